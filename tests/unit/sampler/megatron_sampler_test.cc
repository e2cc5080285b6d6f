#include "sampler/megatron_sampler.h"

#include <gtest/gtest.h>

#include "sampler/mt19937.h"
#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

using Ids = std::vector<SampleId>;

constexpr auto kKind = Kind::kMegatronCyclic;

TEST(MegatronSampler, ShardedRanksShuffleTheirOwnPart) {
  // 23 samples, rounds of 2 x 3: three whole ones, so that each rank has 9 samples of its own.
  const Recipe recipe{.kind = kKind, .size = 23, .world = 2, .drop_last = true, .block = 3};
  Mt19937 generator(4);
  const Ids permutation = MakeRandperm(9, Randperm::kNarrow, generator);
  const Ids order = MegatronCyclicOrder(recipe, 4);
  ASSERT_EQ(order.size(), 18U);
  for (std::size_t k = 0; k < 9; ++k) {
    EXPECT_EQ(order[2 * k], permutation[k]);
    EXPECT_EQ(order[2 * k + 1], 9 + permutation[k]);
  }
}

TEST(MegatronSampler, OtherwiseOnePermutationOfWholeMicroBatchesIsDealt) {
  const Recipe recipe{
      .kind = kKind, .size = 23, .world = 2, .drop_last = true, .block = 3, .sharded = false};
  Mt19937 generator(4);
  Ids expected = MakeRandperm(21, Randperm::kNarrow, generator);
  expected.resize(18);
  EXPECT_EQ(MegatronCyclicOrder(recipe, 4), expected);
}

TEST(MegatronSampler, SeedsAdd) {
  const Recipe recipe{.kind = kKind, .size = 23, .seed = 3, .drop_last = true, .block = 3};
  const Recipe plain{.kind = kKind, .size = 23, .drop_last = true, .block = 3};
  EXPECT_EQ(MegatronCyclicOrder(recipe, 4), MegatronCyclicOrder(plain, 7));
}

}  // namespace
}  // namespace optcache::sampler
