#include "operator/manager/condition_metrics.h"

#include <string>

namespace optcache::manager {
namespace {

// As kube-state-metrics writes it.
std::string StatusLabel(const kube::Json& condition) {
  const std::string status = kube::TextAt(condition, "/status");
  return status == "True" ? "true" : status == "False" ? "false" : "unknown";
}

}  // namespace

void VisitConditions(const char* metric, const std::string& dataset, const kube::Json& object,
                     const CounterVisitor& visitor) {
  for (const kube::Json& condition : kube::Items(object, "/status/conditions")) {
    visitor(MetricKind::kGauge, metric,
            {{"dataset", dataset},
             {"condition", kube::TextAt(condition, "/type")},
             {"status", StatusLabel(condition)}},
            1);
  }
}

void VisitConditions(const kube::ObjectCache& datasets, const CounterVisitor& visitor) {
  std::size_t shown = 0;
  for (const auto& dataset : datasets.List()) {
    if (++shown > kMaxDatasetsShown) return;
    VisitConditions("optcache_dataset_condition", kube::KeyOf(*dataset).ToString(), *dataset,
                    visitor);
  }
}

}  // namespace optcache::manager
