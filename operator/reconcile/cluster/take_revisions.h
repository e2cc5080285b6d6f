#pragma once

// What of a Dataset's CachePlan is in force: by the rollout as its status keeps it, not by its
// spec.

#include <string>

#include "api/cache_plan.h"
#include "kube/object_cache.h"
#include "operator/reconcile/cluster/cluster_plan.h"
#include "operator/reconcile/dataset/plan_choice.h"

namespace optcache::reconcile {

struct RevisionInForce {
  std::string hash;
  api::CachePlanSpec content;
};

// Sets plan, revision, rollout, revisions and question. `before`: what was in force at the last
// look; its ControllerRevision may not be seen yet. A CachePlan without a rollout behind it is in
// force as it is, and so are the defaults where there is none or it cannot be understood.
void TakeRevisions(const PlanChoice& choice, const kube::ObjectCache& plans,
                   const kube::ObjectCache& revisions, const RevisionInForce& before,
                   ClusterDataset& dataset);

}  // namespace optcache::reconcile
