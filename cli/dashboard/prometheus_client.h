#pragma once

// Asks a Prometheus several questions and waits for all answers.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/dashboard/prometheus.h"

namespace optcache::cli {

struct PrometheusOptions {
  std::string url;    // "http://host:9090", with a path if it is behind one
  std::string token;  // a bearer token; empty: none
  Duration timeout = std::chrono::seconds(30);
};

using SeriesAnswer = Result<std::vector<PrometheusSeries>>;

// In the order of the questions: each its series, or why Prometheus refused the query. kUnavailable
// or kDeadlineExceeded if Prometheus does not answer, or something else does.
Result<std::vector<SeriesAnswer>> AskPrometheus(const PrometheusOptions& options,
                                                const std::vector<PrometheusQuestion>& questions);

}  // namespace optcache::cli
