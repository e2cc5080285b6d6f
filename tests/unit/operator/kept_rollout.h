#pragma once

// The state of a rollout as the status of a CachePlan keeps it: all that a new leader knows.

#include <string>

#include "operator/api/resources.h"
#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {

// Revisions have names that are no hashes.
class KeptRollout {
 public:
  KeptRollout() : plan_(kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"})) {
    plan_["status"] = kube::Json::object();
  }

  coordination::RolloutState Read() const {
    coordination::RolloutState state = RolloutOf(plan_);
    if (!state.current.empty()) state.current = current_;
    return state;
  }
  void Write(const coordination::RolloutState& state) {
    current_ = state.current;
    plan_["status"]["currentRevision"] = current_.empty() ? "" : RevisionName("mine", "0123456789");
    plan_["status"]["rollout"] = RolloutToJson(state);
  }
  kube::Json& json() { return plan_["status"]["rollout"]; }

 private:
  kube::Json plan_;
  std::string current_;
};

}  // namespace optcache::reconcile
