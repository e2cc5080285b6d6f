#pragma once

// Predictions on request: the annotation optcache.io/predict of a CachePlan and the answer in its
// status (docs/formats/rollout.md). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cache_plan.h"
#include "base/result.h"
#include "coordinator/rollout.h"

namespace optcache::reconcile {

inline constexpr const char* kPredictAnnotation = "optcache.io/predict";

// What is asked for.
struct PredictionQuestion {
  std::string id;
  std::string error;  // why it cannot be answered; empty: `spec` can be tried
  api::CachePlanSpec spec;
  std::string trial;        // its id
  std::uint32_t tries = 0;  // how often it was asked for again, as nodes went by different inputs
};
// Nullopt: nobody asks.
std::optional<PredictionQuestion> QuestionOf(const kube::Json& plan);

// Has its status.prediction figures, or a fault of the derivation? Nodes need not keep the trial
// then: a question may stay for ever, when who asked is gone.
bool IsAnswered(const kube::Json& plan, const PredictionQuestion& question);

// The trial of the revision in force that a question is compared with: asked for with its own, so
// that nodes derive both from the same inputs.
std::string PresentTrial(const PredictionQuestion& question, std::string_view current_revision);

// status.prediction. Without figures while nodes still derive it, or are to derive it again.
kube::Json AnswerOf(const PredictionQuestion& question,
                    const std::vector<coordination::RolloutNode>& nodes,
                    const std::string& current_revision);

}  // namespace optcache::reconcile
