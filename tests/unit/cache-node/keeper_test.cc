// What becomes of samples whose read the plan does not foresee, as it takes the pass to end before.

#include "cache-node/keeper.h"

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;

constexpr StreamId kReads = 42;

LoopbackCluster::Options OneNodeOfTen() {
  return {.nodes = 1, .sizes = std::vector<std::uint32_t>(10, 100)};
}

TEST(Keeper, AReadBehindTheEndOfItsPassLeavesWhatIsHeldForOthers) {
  LoopbackCluster cluster(OneNodeOfTen());
  cluster.Plan(kReads, 0, 3, {.keep = true, .keep_at = 1});
  cluster.Plan(kReads, 2, 5, {.here = true});
  cluster.Plan(kReads, 0, 8, {.beyond = true});
  cluster.cache(0).keeper().KeepFor(2);
  EXPECT_TRUE(cluster.Read(0, kReads, {0, 3, 7}));
  EXPECT_FALSE(cluster.Read(0, kReads, {0, 8, 7})) << "it is here";
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  EXPECT_EQ(cluster.Get(0, kReads, {0, 8, 9}).answer, Answer::kMissDrop);
  EXPECT_FALSE(cluster.Put(0, kReads, {0, 8, 9}));
  EXPECT_FALSE(cluster.Read(0, kReads, {2, 5, 7}));
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
}

TEST(Keeper, WhatWasReadBehindTheEndBeforeThePlanCameGoesUnlessItLayThere) {
  LoopbackCluster cluster(OneNodeOfTen());
  cluster.Plan(kReads, 0, 3, {.keep = true, .keep_at = 1});
  EXPECT_TRUE(cluster.Read(0, kReads, {0, 3, 7}));
  EXPECT_FALSE(cluster.Read(0, kReads, {0, 8, 7}));
  EXPECT_TRUE(cluster.Read(0, kReads, {0, 9, 5}));
  cluster.Plan(kReads, 0, 8, {.beyond = true});
  cluster.Plan(kReads, 0, 9, {.beyond = true});
  cluster.cache(0).keeper().OnNewPlan({});
  EXPECT_NE(cluster.cache(0).tier().Find(7), nullptr);
  EXPECT_EQ(cluster.cache(0).tier().Find(5), nullptr);
}

}  // namespace
}  // namespace optcache::node
