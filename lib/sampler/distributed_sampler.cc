#include "sampler/distributed_sampler.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "sampler/mt19937.h"
#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

// From the order in which blocks are dealt to global positions: within each round, the k-th of rank
// r goes from r * block + k to k * world + r.
std::vector<SampleId> DealBlocks(std::span<const SampleId> dealt, std::uint64_t world,
                                 std::uint64_t block) {
  std::vector<SampleId> order;
  order.reserve(dealt.size());
  for (std::size_t round = 0; round < dealt.size(); round += world * block) {
    for (std::uint64_t k = 0; k < block; ++k) {
      for (std::uint64_t rank = 0; rank < world; ++rank)
        order.push_back(dealt[round + rank * block + k]);
    }
  }
  return order;
}

}  // namespace

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
  if (recipe.block == 1 || recipe.world == 1) return order;
  return DealBlocks(order, recipe.world, recipe.block);
}

}  // namespace optcache::sampler
