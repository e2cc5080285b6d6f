#include "sampler/distributed_sampler.h"

#include <algorithm>
#include <span>

#include "sampler/mt19937.h"
#include "sampler/randperm.h"
#include "sampler/sequential_sampler.h"

namespace optcache::sampler {
namespace {

// From the order in which blocks are dealt to global positions: within each round, the k-th of rank
// r goes from r * block + k to k * world + r.
std::vector<SampleId> DealBlocks(std::span<const SampleId> dealt, std::uint64_t world,
                                 std::uint64_t block, const StopCheck& stop) {
  std::vector<SampleId> order;
  order.reserve(dealt.size());
  for (std::size_t round = 0; round < dealt.size(); round += world * block) {
    for (std::uint64_t k = 0; k < block; ++k) {
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        if (stop.At(order.size())) return order;
        order.push_back(dealt[round + rank * block + k]);
      }
    }
  }
  return order;
}

}  // namespace

std::vector<SampleId> DistributedOrder(const Recipe& recipe, std::uint64_t epoch,
                                       const StopCheck& stop) {
  const std::uint64_t length = PassLength(recipe);
  std::vector<SampleId> order;
  order.reserve(std::max(recipe.size, length));
  if (recipe.shuffle) {
    Mt19937 generator(static_cast<std::uint64_t>(recipe.seed) + epoch);
    AppendRandperm(recipe.size, RandpermOf(recipe.size, recipe.modern_randperm), generator, order,
                   stop);
  } else {
    AppendSequence(recipe.size, order, stop);
  }
  if (stop.Now()) return order;  // it may be short
  for (std::uint64_t i = recipe.size; i < length && !stop.At(i); ++i)
    order.push_back(order[i - recipe.size]);
  if (order.size() > length) order.resize(length);
  if (recipe.block == 1 || recipe.world == 1 || stop.Now()) return order;
  return DealBlocks(order, recipe.world, recipe.block, stop);
}

}  // namespace optcache::sampler
