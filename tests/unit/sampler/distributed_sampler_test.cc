#include "sampler/distributed_sampler.h"

#include <gtest/gtest.h>

#include "sampler/mt19937.h"
#include "sampler/randperm.h"

namespace optcache::sampler {
namespace {

using Ids = std::vector<SampleId>;

TEST(DistributedSampler, ShufflesBySeedPlusEpoch) {
  Mt19937 generator(12);
  const Ids permutation = MakeRandperm(100, Randperm::kNarrow, generator);
  EXPECT_EQ(DistributedOrder({.size = 100, .seed = 12}, 0), permutation);
  EXPECT_EQ(DistributedOrder({.size = 100, .seed = 5}, 7), permutation);
  EXPECT_EQ(DistributedOrder({.size = 100, .seed = -1}, 13), permutation);
}

TEST(DistributedSampler, WithoutShuffleEveryEpochIsTheSame) {
  const Recipe recipe{.size = 5, .shuffle = false};
  EXPECT_EQ(DistributedOrder(recipe, 0), (Ids{0, 1, 2, 3, 4}));
  EXPECT_EQ(DistributedOrder(recipe, 9), (Ids{0, 1, 2, 3, 4}));
}

TEST(DistributedSampler, PadsFromTheStartOfTheList) {
  EXPECT_EQ(DistributedOrder({.size = 5, .world = 4, .shuffle = false}, 0),
            (Ids{0, 1, 2, 3, 4, 0, 1, 2}));
}

TEST(DistributedSampler, PadsInCirclesWhenThereAreMoreRanksThanSamples) {
  EXPECT_EQ(DistributedOrder({.size = 3, .world = 8, .shuffle = false}, 0),
            (Ids{0, 1, 2, 0, 1, 2, 0, 1}));
}

TEST(DistributedSampler, DropsTheRestWithDropLast) {
  EXPECT_EQ(DistributedOrder({.size = 7, .world = 3, .shuffle = false, .drop_last = true}, 0),
            (Ids{0, 1, 2, 3, 4, 5}));
  EXPECT_TRUE(DistributedOrder({.size = 2, .world = 3, .drop_last = true}, 0).empty());
}

TEST(DistributedSampler, SeedsWrapAround) {
  constexpr std::int64_t kLargest = 0x7fffffffffffffff;
  EXPECT_EQ(DistributedOrder({.size = 50, .seed = kLargest}, 2),
            DistributedOrder({.size = 50, .seed = 1}, 0));
}

}  // namespace
}  // namespace optcache::sampler
