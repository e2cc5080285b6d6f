#include <gtest/gtest.h>

#include "cache-node/retention/retention_manager.h"
#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;

constexpr StreamId kSpareReads = 42;

// Room for ten samples.
struct SparesTest : testing::Test {
  void Keep(SampleId first, SampleId last) {
    for (SampleId id = first; id < last; ++id) {
      cluster.Plan(kSpareReads, 0, id, {.keep = true, .keep_at = 1});
      EXPECT_TRUE(cluster.Read(0, kSpareReads, {0, id, id}));
    }
  }
  // Reads samples that the plan gives up.
  int GiveUp(SampleId first, SampleId last) {
    int store_reads = 0;
    for (SampleId id = first; id < last; ++id) {
      cluster.Plan(kSpareReads, 1, id, {});
      store_reads += cluster.Read(0, kSpareReads, {1, id, id}) ? 1 : 0;
    }
    return store_reads;
  }
  bool IsHere(SampleId id) { return cluster.cache(0).tier().Find(id) != nullptr; }
  RetentionManager& retention_manager() { return cluster.cache(0).retention_manager(); }

  LoopbackCluster cluster{{.nodes = 1, .sizes = std::vector<std::uint32_t>(40, 100)}};
};

TEST_F(SparesTest, WhatIsGivenUpIsReadFromHereWhileThereIsRoom) {
  Keep(0, 5);
  EXPECT_EQ(GiveUp(0, 5), 0);
  EXPECT_EQ(GiveUp(10, 15), 5) << "nobody had them";
  EXPECT_EQ(retention_manager().spare_bytes(), 1000U);
  EXPECT_TRUE(retention_manager().Inventory().empty());
  EXPECT_EQ(GiveUp(0, 5) + GiveUp(10, 15), 0);
  EXPECT_EQ(cluster.cache(0).counters().hits_spare, 10U);
  EXPECT_EQ(cluster.Get(0, kSpareReads, {1, 20, 20}).answer, Answer::kMissKeep)
      << "no plan knows of it";
  cluster.Plan(kSpareReads, 1, 21, {});
  EXPECT_EQ(cluster.Get(0, kSpareReads, {1, 21, 21}).answer, Answer::kMissDrop)
      << "there is no room";
}

TEST_F(SparesTest, TheLongestUnusedGivesWayToWhatIsKept) {
  Keep(0, 10);
  EXPECT_EQ(GiveUp(0, 5), 0);
  EXPECT_EQ(GiveUp(0, 1), 0);  // read again
  Keep(20, 24);
  EXPECT_TRUE(IsHere(0));
  for (SampleId id = 1; id < 5; ++id)
    EXPECT_FALSE(IsHere(id)) << id;
  EXPECT_EQ(retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(cluster.cache(0).tier().used(), 1000U) << "the reserve is not for it";
  EXPECT_EQ(cluster.cache(0).counters().puts_refused, 0U);
}

TEST_F(SparesTest, WhatIsWantedAgainIsKept) {
  Keep(0, 3);
  EXPECT_EQ(GiveUp(0, 3), 0);
  cluster.Plan(kSpareReads, 2, 1, {.keep = true, .keep_at = 1});
  EXPECT_FALSE(cluster.Read(0, kSpareReads, {2, 1, 1}));
  EXPECT_FALSE(cluster.Read(0, kSpareReads, {2, 2, 2})) << "no plan knows of this read";
  EXPECT_EQ(retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(retention_manager().Inventory(), std::vector<SampleId>{1});
  retention_manager().KeepSpares();
  EXPECT_EQ(retention_manager().spare_bytes(), 0U);
  EXPECT_EQ(retention_manager().Inventory(), (std::vector<SampleId>{0, 1}));
}

TEST_F(SparesTest, ASmallerShareIsNotForThem) {
  Keep(0, 5);
  EXPECT_EQ(GiveUp(0, 3), 0);
  cluster.cache(0).SetBudget(Retention::kOptimal, 300, 100);
  EXPECT_EQ(retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(retention_manager().Inventory(), (std::vector<SampleId>{3, 4}));
  cluster.cache(0).SetBudget(Retention::kPin, 300, 100);
  EXPECT_EQ(retention_manager().spare_bytes(), 0U);
  EXPECT_EQ(retention_manager().Inventory().size(), 3U) << "Pin keeps what is here";
}

TEST_F(SparesTest, WithoutAShareNothingOutlastsThePlanUnlessItIsGivenAway) {
  Keep(0, 5);
  cluster.cache(0).SetBudget(Retention::kOptimal, 0, 0, 0, /*departs=*/true);
  cluster.cache(0).SetBudget(Retention::kPin, 0, 0, 0, /*departs=*/true);
  EXPECT_EQ(retention_manager().Inventory().size(), 5U);
  cluster.cache(0).SetBudget(Retention::kOptimal, 0, 0);
  cluster.cache(0).SetBudget(Retention::kPin, 0, 0);
  EXPECT_EQ(retention_manager().Inventory().size(), 0U);
}

TEST_F(SparesTest, AMissIsNotKeptWhereThereIsNoRoom) {
  Keep(10, 20);
  cluster.Plan(kSpareReads, 0, 3, {});
  const auto reply = cluster.Get(0, kSpareReads, {0, 3, 7});
  EXPECT_EQ(reply.answer, Answer::kMissDrop);
  EXPECT_NE(reply.lease, 0U);
}

}  // namespace
}  // namespace optcache::node
