#include "sampler/megatron_sampler.h"

#include "sampler/mt19937.h"
#include "sampler/randperm.h"

namespace optcache::sampler {

std::vector<SampleId> MegatronCyclicOrder(const Recipe& recipe, std::uint64_t epoch,
                                          const StopCheck& stop) {
  Mt19937 generator(static_cast<std::uint64_t>(recipe.seed) + epoch);
  const auto randperm = [&](std::uint64_t n) {
    return MakeRandperm(n, RandpermOf(n, recipe.modern_randperm), generator, stop);
  };
  if (!recipe.sharded) {
    std::vector<SampleId> order = randperm(recipe.size / recipe.block * recipe.block);
    if (!stop.Now()) order.resize(PassLength(recipe));
    return order;
  }
  const std::uint64_t bucket = RankLength(recipe);
  const std::vector<SampleId> permutation = randperm(bucket);
  std::vector<SampleId> order;
  order.reserve(bucket * recipe.world);
  for (const SampleId within : permutation) {
    for (std::uint64_t rank = 0; rank < recipe.world; ++rank) {
      if (stop.At(order.size())) return order;
      order.push_back(static_cast<SampleId>(rank * bucket + within));
    }
  }
  return order;
}

}  // namespace optcache::sampler
