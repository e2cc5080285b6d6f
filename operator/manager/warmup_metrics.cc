#include "operator/manager/warmup_metrics.h"

#include <string>
#include <string_view>

#include "kube/conditions.h"
#include "operator/api/warmup_status.h"

namespace optcache::manager {
namespace {

// As docs/metrics.md says.
std::string_view StateOf(const kube::Json& warmup) {
  const kube::Condition complete = kube::ConditionOf(warmup, "Complete");
  if (complete.status == kube::ConditionStatus::kTrue) return "complete";
  if (kube::ConditionOf(warmup, "Failed").status == kube::ConditionStatus::kTrue) return "failed";
  return complete.reason == "Warming" ? "running" : "waiting";
}

}  // namespace

void VisitWarmups(const kube::ObjectCache& warmups, const CounterVisitor& visitor) {
  std::size_t shown = 0;
  for (const auto& warmup : warmups.List()) {
    if (++shown > kMaxWarmupsShown) return;
    const kube::ObjectKey key = kube::KeyOf(*warmup);
    const MetricLabels labels = {{"dataset", key.ns + "/" + kube::TextAt(*warmup, "/spec/dataset")},
                                 {"warmup", key.ToString()}};
    const std::string_view present = StateOf(*warmup);
    for (const char* state : {"waiting", "running", "complete", "failed"}) {
      MetricLabels with_state = labels;
      with_state.emplace_back("state", state);
      visitor(MetricKind::kGauge, "optcache_warmup_state", with_state, present == state ? 1 : 0);
    }
    const api::WarmupStatus status = api::ParseWarmupStatus(*warmup);
    visitor(MetricKind::kGauge, "optcache_warmup_bytes", labels, static_cast<double>(status.bytes));
    visitor(MetricKind::kGauge, "optcache_warmup_room_bytes", labels,
            static_cast<double>(status.total_bytes));
  }
}

}  // namespace optcache::manager
