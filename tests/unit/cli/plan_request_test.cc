#include "cli/plan/plan_request.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampler/order_source.h"
#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

using testing::HasSubstr;

std::string OrderErrorOf(const PlanOrderFlags& flags) {
  const auto order = MakePlannedOrder(flags);
  if (order) return "no error";
  EXPECT_EQ(order.error().code(), Code::kInvalidArgument);
  return order.error().message();
}

TEST(PlannedOrder, OneRandomSamplerDrawsAllReads) {
  const auto order = MakePlannedOrder({.dataset_size = 100, .total_iter = 250, .seed = 3});
  ASSERT_TRUE(order) << order.error().message();
  EXPECT_EQ(order->dataset_size, 100U);
  EXPECT_EQ(order->seed, 3);
  auto source = sampler::OrderSource::Make(
      *sampler::ParseRecipe("torch-random size=100 seed=3 base_seed=never replacement=true "
                            "draws=250"));
  EXPECT_EQ(order->reads, source->PassOrder(0).value());
  const auto once =
      MakePlannedOrder({.dataset_size = 100, .total_iter = 40, .replacement = false, .seed = 3});
  ASSERT_TRUE(once);
  EXPECT_EQ(std::set<SampleId>(once->reads.begin(), once->reads.end()).size(), 40U);
}

TEST(PlannedOrder, PassesComeOneAfterTheOther) {
  const PlanOrderFlags flags{.dataset_size = 10, .seed = 1, .epochs = 3, .world = 2};
  const auto all = MakePlannedOrder(flags);
  ASSERT_TRUE(all) << all.error().message();
  auto source = sampler::OrderSource::Make({.size = 10, .seed = 1, .world = 2});
  std::vector<SampleId> expected;
  for (const std::uint64_t epoch : {0U, 1U, 2U}) {
    const auto pass = source->PassOrder(epoch).value();
    expected.insert(expected.end(), pass.begin(), pass.end());
  }
  EXPECT_EQ(all->reads, expected);
  PlanOrderFlags one_rank = flags;
  one_rank.rank = 1;
  const auto rank = MakePlannedOrder(one_rank);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->reads.size(), 15U);
  EXPECT_EQ(rank->reads[1], expected[3]);
}

TEST(PlannedOrder, ARecipeSaysTheDataset) {
  const auto order = MakePlannedOrder({.epochs = 1, .recipe = "sequential size=3 subset=7+3"});
  ASSERT_TRUE(order) << order.error().message();
  EXPECT_EQ(order->dataset_size, 10U);
  EXPECT_EQ(order->reads, (std::vector<SampleId>{7, 8, 9}));
}

TEST(PlannedOrder, SaysWhichFlagIsWrong) {
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10}), HasSubstr("set --total-iter N"));
  EXPECT_THAT(OrderErrorOf({.total_iter = 10}), HasSubstr("set --dataset-size N"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10, .total_iter = 10, .world = 2}),
              HasSubstr("--world go with --epochs"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10, .replacement = false, .epochs = 1}),
              HasSubstr("--no-replacement goes with --total-iter"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10, .epochs = 1, .recipe = "sequential size=3"}),
              HasSubstr("leave --dataset-size and --sampler out"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10, .epochs = 1, .rank = 1}), HasSubstr("rank"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 1'000'000, .epochs = 101}),
              HasSubstr("plan fewer epochs at a time"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 100'000'001, .total_iter = 1}),
              HasSubstr("a plan is for at most 100000000"));
  EXPECT_THAT(OrderErrorOf({.dataset_size = 10, .epochs = 1, .sampler = "lucky"}),
              HasSubstr("lucky"));
}

TEST(PlannedRoom, IsInSamplesOrInBytes) {
  EXPECT_FALSE(MakePlannedRoom({}, 100).value().has_value());
  EXPECT_EQ(MakePlannedRoom({.maxsize = 7}, 100).value()->capacity, 7U);
  EXPECT_EQ(MakePlannedRoom({.capacity = "30%"}, 100).value()->capacity, 30U);
  const auto message = [](const PlanRoomFlags& flags) {
    const auto room = MakePlannedRoom(flags, 100);
    return room ? "no error" : room.error().message();
  };
  EXPECT_THAT(message({.maxsize = 7, .capacity = "30%"}), HasSubstr("not both"));
  EXPECT_THAT(message({.capacity = "3Gi"}), HasSubstr("--capacity 3Gi is in bytes"));
  EXPECT_THAT(message({.capacity = "101%"}), HasSubstr("at most at 100%"));
  EXPECT_THAT(message({.capacity = "x%"}), HasSubstr("at most at 100%"));
  EXPECT_THAT(message({.capacity = ".1%"}), HasSubstr("keeps nothing"));
  EXPECT_THAT(message({.manifest = "a"}), HasSubstr("--manifest goes with --capacity"));
  EXPECT_THAT(message({.capacity = "3Gi", .manifest = "/nowhere"}), HasSubstr("/nowhere"));
}

// The recipes are found again, and nothing else is taken for one.
TEST(RecipeOfPlan, FindsTheSampler) {
  const auto recipe_of = [](const PlanOrderFlags& flags, SampleId spoilt = 0) {
    const PlannedOrder order = MakePlannedOrder(flags).value();
    plan::PlanFile plan{.dataset_size = order.dataset_size, .seed = order.seed};
    plan.reads = order.reads;
    plan.reads.back() = (plan.reads.back() + spoilt) % order.dataset_size;
    const auto recipe = RecipeOfPlan(plan);
    return recipe ? sampler::FormatRecipe(*recipe) : "none";
  };
  EXPECT_EQ(recipe_of({.dataset_size = 50, .total_iter = 70, .seed = 9}),
            "torch-random size=50 seed=9 base_seed=never replacement=true draws=70");
  EXPECT_EQ(recipe_of({.dataset_size = 50, .total_iter = 50, .replacement = false, .seed = 9}),
            "torch-random size=50 seed=9 base_seed=never draws=50");
  EXPECT_EQ(recipe_of({.dataset_size = 50, .seed = 9, .epochs = 3}),
            "torch-distributed size=50 seed=9");
  EXPECT_EQ(recipe_of({.dataset_size = 50, .total_iter = 70, .seed = 9}, 1), "none");
  EXPECT_EQ(recipe_of({.dataset_size = 50, .seed = 9, .epochs = 3, .sampler = "sequential"}),
            "none");
}

}  // namespace
}  // namespace optcache::cli
