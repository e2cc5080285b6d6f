#include "sampler/order_source.h"

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

using Ids = std::vector<SampleId>;

TEST(OrderSource, RefusesABadRecipe) {
  EXPECT_EQ(OrderSource::Make({.size = 0}).error().code(), Code::kInvalidArgument);
}

TEST(OrderSource, ARankReadsEveryWorldthPositionOfThePass) {
  OrderSource source = OrderSource::Make({.size = 103, .seed = 4, .world = 4}).value();
  const Ids pass_order = source.PassOrder(2).value();
  ASSERT_EQ(pass_order.size(), PassLength(source.recipe()));
  for (Rank rank = 0; rank < 4; ++rank) {
    const Ids rank_order = source.RankOrder(2, rank).value();
    ASSERT_EQ(rank_order.size(), RankLength(source.recipe()));
    for (std::size_t k = 0; k < rank_order.size(); ++k) {
      ASSERT_EQ(rank_order[k], pass_order[k * 4 + rank]);
    }
  }
}

TEST(OrderSource, PartsAnyOrderAmongTheRanks) {
  const Ids pass_order = {10, 11, 12, 13, 14};
  EXPECT_EQ(RankPart(pass_order, 2, 0), (Ids{10, 12, 14}));
  EXPECT_EQ(RankPart(pass_order, 2, 1), (Ids{11, 13}));
  EXPECT_TRUE(RankPart(pass_order, 9, 7).empty());
}

TEST(OrderSource, ThereIsNoRankBeyondTheWorld) {
  OrderSource source = OrderSource::Make({.size = 5, .world = 2}).value();
  const Status status = source.RankOrder(0, 2).error();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "there is no rank 2 in a world of 2: ranks count from 0");
}

TEST(OrderSource, EpochsDifferAndComeBackTheSame) {
  for (const Kind kind : {Kind::kTorchDistributed, Kind::kTorchRandom}) {
    OrderSource source = OrderSource::Make({.kind = kind, .size = 50}).value();
    const Ids first = source.PassOrder(0).value();
    EXPECT_NE(source.PassOrder(1).value(), first);
    EXPECT_EQ(source.PassOrder(0).value(), first);
  }
}

TEST(OrderSource, SequentialIsTheSameEveryPass) {
  OrderSource source = OrderSource::Make({.kind = Kind::kSequential, .size = 3}).value();
  EXPECT_EQ(source.PassOrder(0).value(), (Ids{0, 1, 2}));
  EXPECT_EQ(source.RankOrder(8, 0).value(), (Ids{0, 1, 2}));
}

TEST(OrderSource, SaysWhenAPassIsOutOfReach) {
  OrderSource source = OrderSource::Make({.kind = Kind::kTorchRandom, .size = 50}).value();
  EXPECT_EQ(source.PassOrder(~0ULL).error().code(), Code::kInvalidArgument);
}

// Of every kind, at whichever look it is stopped.
TEST(OrderSource, EndsSoonWhereItIsStopped) {
  constexpr std::uint64_t kSize = 5 * StopCheck::kSteps;
  const std::vector<Recipe> recipes = {
      {.kind = Kind::kSequential, .size = kSize},
      {.size = kSize, .world = 3, .block = 4},
      {.kind = Kind::kTorchDistributed, .size = kSize, .world = 3, .subset = {{7, kSize}}},
      {.kind = Kind::kTorchRandom, .size = kSize},
      {.kind = Kind::kTorchRandom, .size = kSize, .draws = kSize + 1000},
      {.kind = Kind::kTorchRandom, .size = kSize, .replacement = true},
      {.kind = Kind::kMegatronCyclic, .size = kSize, .world = 2, .drop_last = true},
      {.kind = Kind::kSpdlRandom, .size = kSize, .world = 2, .drop_last = true},
  };
  for (const Recipe& recipe : recipes) {
    SCOPED_TRACE(KindName(recipe.kind));
    const Ids whole = OrderSource::Make(recipe)->PassOrder(3).value();
    for (std::size_t last_look = 1;; ++last_look) {
      std::size_t looks = 0;
      const StopCheck stop([&] { return ++looks >= last_look; });
      const Result<Ids> order = OrderSource::Make(recipe)->PassOrder(3, stop);
      if (order) {
        EXPECT_EQ(*order, whole);
        EXPECT_GE(looks, kSize / StopCheck::kSteps) << "looks too rarely";
        break;
      }
      ASSERT_EQ(order.error().code(), Code::kCancelled);
    }
  }
}

// The words of passes before it, which are skipped, may take minutes.
TEST(OrderSource, EndsSoonWhereItSkips) {
  OrderSource source =
      OrderSource::Make({.kind = Kind::kTorchRandom, .size = 1'000'000'000}).value();
  std::size_t looks = 0;
  const StopCheck stop([&looks] { return ++looks >= 3; });
  EXPECT_EQ(source.PassOrder(10, stop).error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::sampler
