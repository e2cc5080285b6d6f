#include "metrics/metrics_page.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "metrics/catalog.h"

namespace optcache::metrics {
namespace {

prometheus::MetricType TypeOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return prometheus::MetricType::Counter;
    case MetricKind::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricKind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

prometheus::ClientMetric ToClientMetric(MetricKind kind, const MetricLabels& labels, double value) {
  prometheus::ClientMetric metric;
  for (const auto& [name, text] : labels) {
    metric.label.push_back({.name = name, .value = text});
  }
  if (kind == MetricKind::kCounter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  return metric;
}

// A histogram comes number by number (base/histogram.h): the one of these labels gets it.
void AddToHistogram(prometheus::MetricFamily& family, std::string_view part,
                    const MetricLabels& labels, double value) {
  prometheus::ClientMetric wanted;
  double bound = 0;
  for (const auto& [name, text] : labels) {
    if (name == "le") {
      bound = std::strtod(text.c_str(), nullptr);  // "+Inf" is one of the numbers that it reads.
    } else {
      wanted.label.push_back({.name = name, .value = text});
    }
  }
  auto found = std::find_if(family.metric.begin(), family.metric.end(),
                            [&](const auto& metric) { return metric.label == wanted.label; });
  if (found == family.metric.end()) found = family.metric.insert(found, std::move(wanted));
  auto& histogram = found->histogram;
  if (part == "_bucket") {
    histogram.bucket.push_back(
        {.cumulative_count = static_cast<std::uint64_t>(value), .upper_bound = bound});
  } else if (part == "_sum") {
    histogram.sample_sum = value;
  } else {
    histogram.sample_count = static_cast<std::uint64_t>(value);
  }
}

}  // namespace

std::string MetricsPage::Render() const {
  std::map<std::string_view, prometheus::MetricFamily> families;
  double unknown = 0;
  const CounterVisitor visitor = [&](MetricKind /*kind*/, std::string_view name,
                                     const MetricLabels& labels, double value) {
    const Metric* metric = FindMetric(name);
    if (metric == nullptr) {
      ++unknown;
      return;
    }
    prometheus::MetricFamily& family = families[metric->name];
    if (family.name.empty()) {
      family.name = metric->name;
      family.help = metric->help;
      family.type = TypeOf(metric->kind);
    }
    if (metric->kind == MetricKind::kHistogram) {
      return AddToHistogram(family, name.substr(metric->name.size()), labels, value);
    }
    family.metric.push_back(ToClientMetric(metric->kind, labels, value));
  };
  VisitProcess(visitor);
  for (const Part& part : parts_)
    part(visitor);
  visitor(MetricKind::kGauge, "optcache_metrics_unknown", {}, unknown);
  std::vector<prometheus::MetricFamily> list;
  list.reserve(families.size());
  for (auto& [_, family] : families)
    list.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(list);
}

}  // namespace optcache::metrics
