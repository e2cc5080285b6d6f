#include "plan/pass_plan.h"

#include <numeric>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

// Positions 2, 3, 4 of a pass of 5, by two ranks on two nodes.
std::shared_ptr<const PassPlan> SmallPlan(NodeIndex keep_last_at = kNoNode) {
  PassPlanBuilder builder({.key = {.stream = 7, .pass = 1}, .begin = 2, .end = 5, .pass_length = 5},
                          {0, 1}, 2);
  builder.Add(0, 0, 1, 10);
  builder.Add(1, 0, kNoNode, 20);
  builder.Add(0, kNoNode, keep_last_at, 30);
  return builder.Finish();
}

TEST(PassPlan, GivesTheDecisionsItWasMadeOf) {
  const auto plan = SmallPlan();
  EXPECT_EQ(plan->At(2), (Decision{.holder = 0, .keep_at = 1, .planned_here = true}));
  EXPECT_EQ(plan->At(3), (Decision{.holder = 0, .keep_at = kNoNode, .planned_here = false}));
  EXPECT_EQ(plan->At(4), (Decision{.holder = kNoNode, .keep_at = kNoNode, .planned_here = false}));
  EXPECT_EQ(plan->ReaderAt(3), 1);
}

TEST(PassPlan, DecidesNothingOutsideItsRange) {
  const auto plan = SmallPlan();
  EXPECT_EQ(plan->At(1), Decision{});
  EXPECT_EQ(plan->At(5), Decision{});
  EXPECT_FALSE(plan->Covers(5));
}

TEST(PassPlan, CountsReadsAndBytes) {
  const PlanStats stats = SmallPlan()->stats();
  EXPECT_EQ(stats.accesses, 3U);
  EXPECT_EQ(stats.local_hits, 1U);
  EXPECT_EQ(stats.peer_hits, 1U);
  EXPECT_EQ(stats.store_reads, 1U);
  EXPECT_EQ(stats.local_hit_bytes, 10U);
  EXPECT_EQ(stats.peer_hit_bytes, 20U);
  EXPECT_EQ(stats.store_bytes, 30U);
  EXPECT_EQ(stats.moves, 1U);
  EXPECT_EQ(stats.moved_bytes, 10U);
}

TEST(PassPlan, CountsByTenthOfThePass) {
  const PlanStats stats = SmallPlan()->stats();
  EXPECT_EQ(stats.hits_by_tenth[4], 1U);  // position 2 of 5
  EXPECT_EQ(stats.hits_by_tenth[6], 1U);
  EXPECT_EQ(stats.hits_by_tenth[8], 0U);
  EXPECT_EQ(stats.accesses_by_tenth[8], 1U);
}

TEST(PassPlan, EveryTenthOfAShortPassIsCountedOnce) {
  for (Position length = 1; length < 40; ++length) {
    PassPlanBuilder builder({.key = {}, .begin = 0, .end = length, .pass_length = length}, {0}, 1);
    for (Position p = 0; p < length; ++p)
      builder.Add(0, kNoNode, kNoNode, 1);
    std::array<std::uint64_t, 10> expected{};
    for (Position p = 0; p < length; ++p)
      ++expected[p * 10 / length];
    EXPECT_EQ(builder.Finish()->stats().accesses_by_tenth, expected) << length;
  }
}

TEST(PassPlan, OnlySomePositionsAreReadFromPeers) {
  for (const std::size_t nodes : {3U, 300U}) {
    PassPlanBuilder builder({.key = {}, .begin = 0, .end = 5, .pass_length = 5}, {0}, nodes);
    const std::vector<NodeIndex> holders = {kNoNode, 1, 0, 2, kNoNode};
    for (const NodeIndex holder : holders)
      builder.Add(0, holder, 0, 1);
    const auto plan = builder.Finish();
    for (Position p = 0; p < 5; ++p)
      EXPECT_EQ(plan->At(p).holder, holders[p]) << p;
  }
}

TEST(PassPlan, DigestTellsPlansApart) {
  EXPECT_EQ(SmallPlan()->digest(), SmallPlan()->digest());
  EXPECT_NE(SmallPlan()->digest(), SmallPlan(0)->digest());
}

// As docs/formats/plan.md defines it: this value may not change within a protocol version.
TEST(PassPlan, DigestIsTheDocumentedOne) {
  EXPECT_EQ(SmallPlan()->digest(), 9330142379250094546U);
}

TEST(PassPlan, TakesMoreNodesThanAByteCanName) {
  for (const std::size_t nodes : {254U, 255U, 256U, 65'534U}) {
    const auto last = static_cast<NodeIndex>(nodes - 1);
    PassPlanBuilder builder({.key = {}, .begin = 0, .end = 2, .pass_length = 2}, {0}, nodes);
    builder.Add(0, last, last, 1);
    builder.Add(0, kNoNode, kNoNode, 1);
    const auto plan = builder.Finish();
    EXPECT_EQ(plan->At(0).keep_at, last);
    EXPECT_EQ(plan->At(0).holder, last);
    EXPECT_EQ(plan->At(1), Decision{});
  }
}

}  // namespace
}  // namespace optcache::plan
