#pragma once

// Predictions on request: the annotation optcache.io/predict of a CachePlan and the answer in its
// status (docs/formats/rollout.md). Pure.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "coordination/rollout.h"
#include "operator/api/cache_plan_types.h"

namespace optcache::reconcile {

inline constexpr const char* kPredictAnnotation = "optcache.io/predict";

// What is asked for.
struct PredictionQuestion {
  std::string id;
  std::string error;  // why it cannot be answered; empty: `spec` can be tried
  api::CachePlanSpec spec;
  std::string trial;  // its id
};
// Nullopt: nobody asks.
std::optional<PredictionQuestion> QuestionOf(const kube::Json& plan);

// Has its status.prediction figures, or a fault of the derivation? Nodes need not keep the trial
// then: a question may stay for ever, when who asked is gone.
bool IsAnswered(const kube::Json& plan, const PredictionQuestion& question);

// status.prediction. Without figures while nodes still derive it.
kube::Json AnswerOf(const PredictionQuestion& question,
                    const std::vector<coordination::RolloutNode>& nodes,
                    const std::string& current_revision);

}  // namespace optcache::reconcile
