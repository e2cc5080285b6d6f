#include "sampler/distributed_sampler.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "sampler/mt19937.h"
#include "sampler/randperm.h"

namespace optcache::sampler {

std::vector<SampleId> DistributedOrder(const Recipe& recipe, std::uint64_t epoch) {
  const std::uint64_t length = PassLength(recipe);
  std::vector<SampleId> order(std::max(recipe.size, length));
  const std::span<SampleId> dataset = std::span(order).first(recipe.size);
  if (recipe.shuffle) {
    Mt19937 generator(static_cast<std::uint64_t>(recipe.seed) + epoch);
    FillRandperm(dataset, RandpermOf(recipe.size, recipe.modern_randperm), generator);
  } else {
    std::iota(dataset.begin(), dataset.end(), SampleId{0});
  }
  for (std::uint64_t i = recipe.size; i < length; ++i)
    order[i] = order[i - recipe.size];
  order.resize(length);
  return order;
}

}  // namespace optcache::sampler
