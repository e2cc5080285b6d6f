#pragma once

// status.rollout of a CachePlan: what the rollout's state machine knows between two steps.

#include <optional>

#include "coordinator/rollout.h"
#include "kube/object.h"

namespace optcache::reconcile {

// Without `current`, which is the plan's status.currentRevision.
kube::Json RolloutToJson(const coordination::RolloutState& state);

// Of a CachePlan's status. What cannot be read is as if it were not there: a rollout then begins
// again at Prepare, and one that has no phase has none behind it.
coordination::RolloutState RolloutOf(const kube::Json& plan);

kube::Json NumbersToJson(const coordination::EpochNumbers& numbers);

// What is predicted of the revision in force, from the same inputs as `state.predicted` of the
// update; nullopt: nodes tell of no trial that is.
std::optional<coordination::EpochNumbers> ForecastInForce(
    const coordination::RolloutState& state, const coordination::RolloutInputs& inputs);

}  // namespace optcache::reconcile
