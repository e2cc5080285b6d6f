#include "sampler/pod_order.h"

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

PodOrder Parsed(std::string_view text) {
  auto order = ParsePodOrder(text);
  EXPECT_TRUE(order.has_value()) << order.error().message();
  return order.value_or(PodOrder{});
}

TEST(PodOrder, IsARecipeByCommasAndARankCount) {
  const PodOrder order = Parsed("torch-distributed,seed=7, world=8,ranks=4,drop_last=true");
  EXPECT_EQ(order.ranks, 4U);
  EXPECT_EQ(order.recipe, (Recipe{.size = 0, .seed = 7, .world = 8, .drop_last = true}));
}

TEST(PodOrder, HasOneRankUnlessItSaysMore) {
  EXPECT_EQ(Parsed("sequential").ranks, 1U);
  EXPECT_EQ(Parsed("torch-random,seed=1").recipe.kind, Kind::kTorchRandom);
}

TEST(PodOrder, BeginsWithEpochZeroUnlessItSaysAnother) {
  EXPECT_EQ(Parsed("sequential").epoch, 0U);
  const PodOrder order = Parsed("torch-distributed,seed=1,epoch=7");
  EXPECT_EQ(order.epoch, 7U);
  EXPECT_EQ(RanksOf(order, 0, 10)->epoch, 7U);
  EXPECT_EQ(Parsed("sequential,epoch=1000000").epoch, kMaxEpochOfPod);
}

TEST(PodOrder, GivesEachPodItsRanksAndTheDatasetsSize) {
  const PodOrder order = Parsed("torch-distributed,world=6,ranks=2");
  const auto ranks = RanksOf(order, 2, 100);
  ASSERT_TRUE(ranks.has_value());
  EXPECT_EQ(ranks->ranks, (std::vector<Rank>{4, 5}));
  EXPECT_EQ(ranks->recipe.size, 100U);
  EXPECT_FALSE(RanksOf(order, 3, 100).has_value()) << "ranks 6 and 7 of 6";
}

TEST(PodOrder, HoldsTheDatasetToASizeThatIsSaid) {
  const PodOrder order = Parsed("sequential,size=10");
  EXPECT_TRUE(RanksOf(order, 0, 10).has_value());
  EXPECT_FALSE(RanksOf(order, 0, 11).has_value());
  EXPECT_FALSE(RanksOf(Parsed("spdl-random,draws=20,drop_last=true"), 0, 10).has_value())
      << "more than there are";
}

TEST(PodOrder, RefusesWhatItCannotRead) {
  for (const char* const text :
       {"", "fifo", "torch-distributed,ranks=0", "torch-distributed,ranks=65", "sequential,ranks=x",
        "torch-distributed,world=3,ranks=2", "torch-distributed,seed=1,seed=2", "sequential,,",
        "torch-distributed,subset=0+10,size=10", "torch-distributed,world",
        "sequential,epoch=", "sequential,epoch=-1", "sequential,epoch=1000001",
        "sequential,epoch=1,epoch=7", "sequential,ranks=1,ranks=1"}) {
    const auto order = ParsePodOrder(text);
    ASSERT_FALSE(order.has_value()) << text;
    EXPECT_EQ(order.error().code(), Code::kInvalidArgument);
    EXPECT_NE(order.error().message().find("for example torch-distributed,seed=0"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace optcache::sampler
