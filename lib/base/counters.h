#pragma once

// By which a part reports its numbers without knowing Prometheus: it calls the visitor once a
// number, at each scrape. Names, units and labels are those of docs/metrics.md.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace optcache {

// What a kHistogram reports is NAME_bucket, NAME_sum and NAME_count (base/histogram.h).
enum class MetricKind { kCounter, kGauge, kHistogram };

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

using CounterVisitor = std::function<void(MetricKind kind, std::string_view name,
                                          const MetricLabels& labels, double value)>;

}  // namespace optcache
