#include "sampler/distributed_sampler.h"

#include "sampler/mt19937.h"
#include "sampler/randperm.h"
#include "sampler/sequential_sampler.h"

namespace optcache::sampler {

std::vector<SampleId> DistributedOrder(const Recipe& recipe, std::uint64_t epoch) {
  std::vector<SampleId> order;
  if (recipe.shuffle) {
    Mt19937 generator(static_cast<std::uint64_t>(recipe.seed) + epoch);
    order = MakeRandperm(recipe.size, RandpermOf(recipe.size, recipe.modern_randperm), generator);
  } else {
    order = SequentialOrder(recipe.size);
  }
  const std::uint64_t length = PassLength(recipe);
  order.resize(length);
  for (std::uint64_t i = recipe.size; i < length; ++i)
    order[i] = order[i - recipe.size];
  return order;
}

}  // namespace optcache::sampler
