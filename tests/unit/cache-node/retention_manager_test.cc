// What becomes of samples that are read at another time than the plan has them, or not at all in
// it.

#include "cache-node/retention/retention_manager.h"

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;

constexpr StreamId kReader = 42;

LoopbackCluster::Options OneNodeOfTen() {
  return {.nodes = 1, .sizes = std::vector<std::uint32_t>(10, 100)};
}

TEST(RetentionManager, AReadBehindTheEndOfItsPassLeavesWhatIsHeldForOthers) {
  LoopbackCluster cluster(OneNodeOfTen());
  cluster.Plan(kReader, 0, 3, {.keep = true, .keep_at = 1});
  cluster.Plan(kReader, 2, 5, {.here = true});
  cluster.Plan(kReader, 0, 8, {.beyond = true});
  cluster.cache(0).retention_manager().KeepFor(2);
  EXPECT_TRUE(cluster.Read(0, kReader, {0, 3, 7}));
  EXPECT_FALSE(cluster.Read(0, kReader, {0, 8, 7})) << "it is here";
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  EXPECT_EQ(cluster.Get(0, kReader, {0, 8, 9}).answer, Answer::kMissDrop);
  EXPECT_FALSE(cluster.Put(0, kReader, {0, 8, 9}));
  EXPECT_FALSE(cluster.Read(0, kReader, {2, 5, 7}));
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U);
}

TEST(RetentionManager, WhatWasReadBehindTheEndBeforeThePlanCameGoesUnlessItLayThere) {
  LoopbackCluster cluster(OneNodeOfTen());
  cluster.Plan(kReader, 0, 3, {.keep = true, .keep_at = 1});
  EXPECT_TRUE(cluster.Read(0, kReader, {0, 3, 7}));
  EXPECT_FALSE(cluster.Read(0, kReader, {0, 8, 7}));
  EXPECT_TRUE(cluster.Read(0, kReader, {0, 9, 5}));
  cluster.Plan(kReader, 0, 8, {.beyond = true});
  cluster.Plan(kReader, 0, 9, {.beyond = true});
  cluster.cache(0).retention_manager().OnNewPlan({});
  EXPECT_EQ(cluster.cache(0).retention_manager().Inventory(), std::vector<SampleId>{7});
}

// Two ranks of one machine, of which one has begun the next pass: that the sample has been read in
// both is known when the other one has read it.
class RanksOutOfStep : public testing::Test {
 protected:
  static constexpr SampleId kSample = 7;
  static constexpr wire::ReadItem kFirst{0, 3, kSample}, kSecond{1, 18, kSample},
      kThird{2, 1, kSample}, kFourth{3, 4, kSample};

  void Keep(const wire::ReadItem& read, bool keep = true, bool here = true) {
    cluster_.Plan(kReader, read.pass, read.position, {.here = here, .keep = keep, .keep_at = 1});
  }
  bool ReadsStore(const wire::ReadItem& read) { return cluster_.Read(0, kReader, read); }
  void Reach(PassNumber pass) {
    cluster_.cache(0).retention_manager().OnPassReached(kReader, pass);
  }
  // And the plan wants it.
  bool IsHere() {
    const cache::Entry* entry = cluster_.cache(0).tier().Find(kSample);
    return entry != nullptr && entry->residence != cache::Residence::kSpare;
  }

  LoopbackCluster cluster_{OneNodeOfTen()};
};

TEST_F(RanksOutOfStep, AnEarlyReadIsNotWaitedForAgain) {
  for (const wire::ReadItem& read : {kFirst, kSecond, kThird})
    Keep(read);
  Keep(kFourth, false);
  EXPECT_TRUE(ReadsStore(kFirst));
  EXPECT_FALSE(ReadsStore(kThird));
  EXPECT_FALSE(ReadsStore(kSecond));
  Reach(2);
  Reach(3);
  EXPECT_TRUE(IsHere()) << "for the fourth";
  EXPECT_FALSE(ReadsStore(kFourth));
  EXPECT_FALSE(IsHere());
}

TEST_F(RanksOutOfStep, WhatAnEarlyReadLetsGoGoesWhenAllReadsBeforeItAreMade) {
  Keep(kFirst);
  Keep(kSecond);
  Keep(kThird, false);
  EXPECT_TRUE(ReadsStore(kFirst));
  EXPECT_FALSE(ReadsStore(kThird));
  EXPECT_TRUE(IsHere());
  EXPECT_FALSE(ReadsStore(kSecond));
  EXPECT_FALSE(IsHere());
}

TEST_F(RanksOutOfStep, WhatALaterReadKeptStaysAfterALateOne) {
  Keep(kSecond, false, false);
  Keep(kThird, true, false);
  EXPECT_TRUE(ReadsStore(kThird));
  EXPECT_FALSE(ReadsStore(kSecond));
  EXPECT_TRUE(IsHere()) << "for the fourth";
  Reach(3);
  EXPECT_FALSE(ReadsStore(kFourth));
}

TEST_F(RanksOutOfStep, WhatNobodyReadsGoesWithItsPass) {
  Keep(kFirst);
  EXPECT_TRUE(ReadsStore(kFirst));
  EXPECT_FALSE(ReadsStore(kThird)) << "nobody makes the second";
  Reach(2);
  EXPECT_FALSE(IsHere());
}

}  // namespace
}  // namespace optcache::node
