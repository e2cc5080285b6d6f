#pragma once

// CachePlans as metrics: conditions, how far rollouts are, what was predicted and observed.

#include <string>

#include "base/counters.h"
#include "kube/object.h"
#include "kube/object_cache.h"
#include "operator/manager/cluster_sync.h"

namespace optcache::manager {

// Of the first 1,024 Datasets by name, the CachePlan that counts for each; of each at most 256
// streams, as its CRD says.
void VisitPlans(const kube::ObjectCache& datasets, const kube::ObjectCache& plans,
                const ClusterSync& cluster, const CounterVisitor& visitor);

// What the status of one CachePlan, which counts for `dataset`, says of its rollout.
void VisitPlanStatus(const std::string& dataset, const kube::Json& plan,
                     const CounterVisitor& visitor);

}  // namespace optcache::manager
