#include "metrics/metrics_page.h"

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "metrics/catalog.h"

namespace optcache::metrics {
namespace {

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
      family.type = metric->kind == MetricKind::kCounter ? prometheus::MetricType::Counter
                                                         : prometheus::MetricType::Gauge;
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
