#pragma once

// Every metric that a part of optcache may report. The tables of docs/metrics.md are made from it:
// `./dev generate` writes them, and a test compares them.

#include <span>
#include <string_view>

#include "base/counters.h"

namespace optcache::metrics {

struct Metric {
  std::string_view name;
  MetricKind kind = MetricKind::kGauge;
  std::string_view labels{};   // as the page lists them; empty: none
  std::string_view help;       // one sentence, also in /metrics
  std::string_view details{};  // Markdown that follows it on the page, with its punctuation
  // Why it is in no dashboard and no alert of the chart; empty: it is in one. A test compares.
  std::string_view not_shown{};
};

struct Section {
  std::string_view title;  // a heading of the page
  std::span<const Metric> metrics;
};

// In the order of the page.
std::span<const Section> Catalog();

// Null if there is no such metric. A histogram is found by NAME_bucket, NAME_sum and NAME_count.
const Metric* FindMetric(std::string_view name);

}  // namespace optcache::metrics
