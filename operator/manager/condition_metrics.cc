#include "operator/manager/condition_metrics.h"

#include <string>

namespace optcache::manager {
namespace {

constexpr std::size_t kMaxDatasetsShown = 1024;

// As kube-state-metrics writes it.
std::string StatusLabel(const kube::Json& condition) {
  const std::string status = kube::TextAt(condition, "/status");
  return status == "True" ? "true" : status == "False" ? "false" : "unknown";
}

}  // namespace

void VisitConditions(const kube::ObjectCache& datasets, const CounterVisitor& visitor) {
  std::size_t shown = 0;
  for (const auto& dataset : datasets.List()) {
    if (++shown > kMaxDatasetsShown) return;
    for (const kube::Json& condition : kube::Items(*dataset, "/status/conditions")) {
      visitor(MetricKind::kGauge, "optcache_dataset_condition",
              {{"dataset", kube::KeyOf(*dataset).ToString()},
               {"condition", kube::TextAt(condition, "/type")},
               {"status", StatusLabel(condition)}},
              1);
    }
  }
}

}  // namespace optcache::manager
