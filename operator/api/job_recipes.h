#pragma once

// The orders of the jobs that a CachePlan names, as the coordinator takes them.

#include <vector>

#include "api/cache_plan.h"
#include "coordination/dataset_spec.h"

namespace optcache::api {

std::vector<coordination::JobRecipe> RecipesOf(const std::vector<PlanJobSpec>& jobs);

}  // namespace optcache::api
