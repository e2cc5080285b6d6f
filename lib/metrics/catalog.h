#pragma once

// Every metric that a part of optcache may report: its kind and what it says. docs/metrics.md is
// the same list for people; a test compares them.

#include <span>
#include <string_view>

#include "base/counters.h"

namespace optcache::metrics {

struct Metric {
  std::string_view name;
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;
};

std::span<const Metric> Catalog();

// Null if there is no such metric. A histogram is found by NAME_bucket, NAME_sum and NAME_count.
const Metric* FindMetric(std::string_view name);

}  // namespace optcache::metrics
