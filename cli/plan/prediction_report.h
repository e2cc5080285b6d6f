#pragma once

// What `plan predict` prints. Pure.

#include <string>

#include "cli/plan/prediction.h"

namespace optcache::cli {

std::string PredictionAsTable(const AnsweredPrediction& answer);
std::string PredictionAsJson(const AnsweredPrediction& answer);

}  // namespace optcache::cli
