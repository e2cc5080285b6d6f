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

}  // namespace
}  // namespace optcache::sampler
