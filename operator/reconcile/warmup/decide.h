#pragma once

// What to do for one Warmup. Pure: same observation, same decision.

#include <optional>
#include <string>
#include <vector>

#include "api/cache_plan.h"
#include "base/clock.h"
#include "kube/object.h"
#include "kube/object_cache.h"
#include "operator/reconcile/dataset/observed.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

struct WarmupObserved {
  kube::Json warmup;
  kube::Json dataset;            // that it names; null: there is none
  api::CachePlanSpec plan;       // that the Dataset follows
  std::vector<IndexJob> jobs;    // of Warmups of this name
  std::optional<Placed> placed;  // not known before all nodes have been heard
  Duration placed_for{};         // how long it has been on the nodes on which it is
  std::optional<CacheView> cache;
  double now = 0;  // Unix seconds
};

// The index of Jobs by Warmup, as "namespace/name"; and what is known of one from the caches,
// without placement and the coordinator's view.
inline constexpr const char* kByWarmup = "warmup";
kube::IndexFunction JobsByWarmup();
struct WarmupSources {
  const kube::ObjectCache& datasets;
  const kube::ObjectCache& plans;  // with kByDataset
  const kube::ObjectCache& jobs;   // with kByWarmup
  const kube::ObjectCache& pods;   // with kByJob
};
WarmupObserved ObserveWarmup(const kube::Json& warmup, const WarmupSources& sources, double now);

// Conditions: Complete and Failed, as of a Job; the reasons are those of
// docs/user/troubleshooting.md. One that has ended and has a time to live is deleted after it.
Decision DecideWarmup(const WarmupObserved& observed, const ReconcileSettings& settings);

}  // namespace optcache::reconcile
