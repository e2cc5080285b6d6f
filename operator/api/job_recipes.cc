#include "operator/api/job_recipes.h"

#include "sampler/recipe.h"

namespace optcache::api {

std::vector<coordination::JobRecipe> RecipesOf(const std::vector<PlanJobSpec>& jobs) {
  std::vector<coordination::JobRecipe> recipes;
  recipes.reserve(jobs.size());
  for (const PlanJobSpec& job : jobs) {
    // What does not concern the kind keeps its default, as clients announce it.
    const bool distributed = job.sampler == JobSampler::kTorchDistributed;
    const auto kind = distributed   ? sampler::Kind::kTorchDistributed
                      : job.shuffle ? sampler::Kind::kTorchRandom
                                    : sampler::Kind::kSequential;
    recipes.push_back({.job = job.name,
                       .recipe = {.sampler_kind = static_cast<std::uint8_t>(kind),
                                  .seed = kind == sampler::Kind::kSequential ? 0 : job.seed,
                                  .world = static_cast<std::uint32_t>(job.world),
                                  .shuffle = !distributed || job.shuffle,
                                  .drop_last = distributed && job.drop_last,
                                  .passes = static_cast<std::uint32_t>(job.epochs)}});
  }
  return recipes;
}

}  // namespace optcache::api
