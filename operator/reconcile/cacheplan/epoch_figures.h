#pragma once

// What a CachePlan's status says was predicted, beside what it says was observed: of the same
// passes of the same jobs (docs/formats/rollout.md, "Predicted and observed"). Pure.

#include <optional>
#include <string>

#include "coordination/rollout.h"

namespace optcache::reconcile {

// What was predicted of the passes that are observed; nullopt: of those nothing was.
// `forecast_counts`: it is of the nodes and jobs that there are, and leaves out none.
std::optional<coordination::EpochNumbers> PredictedOfObserved(
    const coordination::RolloutState& state, const coordination::RolloutInputs& inputs,
    bool forecast_counts);

// What is predicted of the jobs that read now, by a forecast that is of them; nullopt: there is
// none.
std::optional<coordination::EpochNumbers> ForecastOfReaders(
    const coordination::RolloutState& state);

// A digest of the names of nodes and of jobs that read, which tells whose a forecast is.
std::string DigestOfReaders(const coordination::RolloutInputs& inputs);

// What is predicted of the revision in force, from the same inputs as `state.predicted` of the
// update; nullopt: nodes tell of no trial that is.
std::optional<coordination::EpochNumbers> ForecastInForce(
    const coordination::RolloutState& state, const coordination::RolloutInputs& inputs);

}  // namespace optcache::reconcile
