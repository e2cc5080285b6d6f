#pragma once

// Asks the operator what a CachePlan would be worth before it is applied: docs/formats/rollout.md,
// "Predictions on request".

#include <string>

#include "base/clock.h"
#include "cli/cluster/kubectl.h"
#include "cli/cluster/plan_resource.h"
#include "cli/terminal/stop_wait.h"

namespace optcache::cli {

struct PredictionRequest {
  std::string file;  // with the CachePlan, as `kubectl apply` would read it; "-": `input`
  std::string input{};
  std::string name_space;  // empty: the file's, else kubectl's own
  std::string id;          // nobody else's
  Duration timeout = std::chrono::minutes(2);
  Duration interval = std::chrono::seconds(1);
};

struct AnsweredPrediction {
  PlanResource plan;  // that is in the cluster
  kube::Json asked;   // content
  Prediction prediction;
};

// However it ends, the question does not stay in the cluster. kNotFound: no such plan;
// kInvalidArgument: no CachePlan in the file, or the operator cannot predict it; kDeadlineExceeded:
// it does not answer; kConflict: somebody else asked; kCancelled: `wait` gave up.
Result<AnsweredPrediction> AskForPrediction(const Kubectl& kubectl,
                                            const PredictionRequest& request, const Wait& wait);

}  // namespace optcache::cli
