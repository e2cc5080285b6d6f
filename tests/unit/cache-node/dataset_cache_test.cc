#include "cache-node/serving/dataset_cache.h"

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Answer;
using wire::GetMode;

constexpr StreamId kStream = 42;

LoopbackCluster::Options Equal(std::size_t nodes, std::size_t samples, std::uint32_t size = 100) {
  return {.nodes = nodes, .sizes = std::vector<std::uint32_t>(samples, size)};
}

TEST(DatasetCache, AMissThatThePlanKeepsIsHereAtItsNextRead) {
  LoopbackCluster cluster(Equal(1, 10));
  cluster.Plan(kStream, 0, 3, {.keep = true, .keep_at = 1});
  cluster.Plan(kStream, 1, 5, {.here = true});
  EXPECT_EQ(cluster.Get(0, kStream, {0, 3, 7}).answer, Answer::kMissKeep);
  EXPECT_TRUE(cluster.Put(0, kStream, {0, 3, 7}));
  EXPECT_EQ(cluster.Get(0, kStream, {1, 5, 7}).answer, Answer::kHere);
  EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100));
  EXPECT_EQ(cluster.cache(0).tier().used(),
            cluster.cache(0).retention_manager().spare_bytes());  // given up
}

TEST(DatasetCache, ANodeThatGoesGivesAwayWhatItHolds) {
  LoopbackCluster cluster(Equal(3, 10));
  for (SampleId id = 0; id < 5; ++id)
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 1});
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  EXPECT_EQ(cluster.GiveAway(0), 5U);
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
  EXPECT_EQ(cluster.cache(0).push_queue().samples(), 0U);
  EXPECT_EQ(cluster.cache(1).tier().samples() + cluster.cache(2).tier().samples(), 5U);
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_NE(cluster.Get(1, 0, {0, id, id}, GetMode::kUrgent).answer, Answer::kMissKeep) << id;
}

TEST(DatasetCache, ANodeOnWhichTheDatasetIsNoLongerPlacedGivesAwayWhatItHolds) {
  LoopbackCluster cluster(Equal(3, 10));
  for (SampleId id = 0; id < 5; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 1});
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  }
  cluster.Place({});  // nowhere for now: it stays
  EXPECT_EQ(cluster.cache(0).tier().samples(), 5U);
  cluster.Place({1, 2, 3});
  cluster.Place({2, 3});
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
  EXPECT_EQ(cluster.cache(1).tier().samples() + cluster.cache(2).tier().samples(), 5U);
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_FALSE(cluster.Read(1, 0, {0, id, id})) << id;
}

TEST(DatasetCache, TheOnlyNodeGivesNothingAway) {
  LoopbackCluster cluster(Equal(1, 10));
  cluster.Plan(kStream, 0, 1, {.keep = true, .keep_at = 1});
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 1, 1}));
  EXPECT_EQ(cluster.GiveAway(0), 0U);
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
}

TEST(DatasetCache, AKeptSampleMovesToTheNodeOfItsNextReader) {
  LoopbackCluster cluster(Equal(3, 10));
  cluster.Plan(kStream, 0, 3, {.keep = true, .keep_at = 3});
  cluster.Plan(kStream, 1, 5, {.here = true});
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 3, 7}));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
  EXPECT_EQ(cluster.cache(2).tier().samples(), 1U);
  EXPECT_EQ(cluster.cache(0).counters().moves, 1U);
  EXPECT_EQ(cluster.Get(2, kStream, {1, 5, 7}).answer, Answer::kHere);
}

TEST(DatasetCache, WhileTheReceiverIsFullTheSourceKeepsAndTriesAgain) {
  LoopbackCluster cluster(Equal(2, 30));
  for (SampleId id = 0; id < 11; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 2});
    EXPECT_TRUE(cluster.Read(1, kStream, {0, id, id}));  // fills node 2 with its reserve
  }
  cluster.Plan(kStream, 0, 20, {.keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 20, 20}));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  EXPECT_GT(cluster.cache(0).counters().moves_refused, 0U);
  // Room again: the sample arrives.
  cluster.Plan(kStream, 1, 0, {.here = true});
  EXPECT_FALSE(cluster.Read(1, kStream, {1, 0, 0}));
  cluster.Advance(seconds(1));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
  EXPECT_NE(cluster.cache(1).tier().Find(20), nullptr);
}

TEST(DatasetCache, AMoveThatFindsNoRoomIsGivenUpAtItsDeadline) {
  LoopbackCluster cluster(Equal(2, 30));
  for (SampleId id = 0; id < 11; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 2});
    cluster.Read(1, kStream, {0, id, id});
  }
  cluster.Plan(kStream, 0, 20, {.keep = true, .keep_at = 2});
  cluster.Read(0, kStream, {0, 20, 20});
  cluster.Advance(seconds(30));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).push_queue().samples(), 0U);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U)
      << "it stays while there is room";
  EXPECT_EQ(cluster.cache(0).counters().dropped_in_transit, 1U);
}

TEST(DatasetCache, WhatThePlanDoesNotExpectIsFoundThroughItsHome) {
  LoopbackCluster cluster(Equal(4, 10));
  cluster.Plan(kStream, 0, 3, {.keep = true, .keep_at = 2});
  cluster.Read(1, kStream, {0, 3, 7});
  // Rank order changed: another node reads it, and the plan then lets it go.
  cluster.Plan(kStream, 1, 0, {});
  EXPECT_EQ(cluster.Get(3, kStream, {1, 0, 7}, GetMode::kUrgent).answer, Answer::kPeer);
  EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100));
  cluster.Settle();
  EXPECT_TRUE(cluster.cache(1).retention_manager().Inventory().empty());
}

TEST(DatasetCache, AReaderThatFetchesFromAPeerKeepsItIfThePlanSaysSo) {
  LoopbackCluster cluster(Equal(4, 10));
  cluster.Plan(kStream, 0, 3, {.keep = true, .keep_at = 2});
  cluster.Read(1, kStream, {0, 3, 7});
  cluster.Plan(kStream, 1, 0, {.keep = true, .keep_at = 4});
  EXPECT_FALSE(cluster.Read(3, kStream, {1, 0, 7}));
  cluster.Settle();
  EXPECT_TRUE(cluster.cache(1).retention_manager().Inventory().empty());
  EXPECT_EQ(cluster.cache(3).retention_manager().Inventory(), std::vector<SampleId>{7});
}

TEST(DatasetCache, WhatIsKeptFromAPeerTakesNoRoomOfTheRelay) {
  LoopbackCluster cluster(Equal(2, 10));
  for (SampleId id = 0; id < 5; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 1});
    cluster.Plan(kStream, 1, id, {.keep = true, .keep_at = 2});
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  }
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_FALSE(cluster.Read(1, kStream, {1, id, id})) << id;
  EXPECT_EQ(cluster.cache(1).tier().samples(), 5U);
  EXPECT_EQ(cluster.cache(1).relay_bytes(), 0U);
}

TEST(DatasetCache, WhatTheRelayHasNoRoomForComesLaterAndNotFromTheStore) {
  LoopbackCluster cluster(Equal(2, 10));
  std::vector<wire::ReadItem> items;
  for (SampleId id = 0; id < 5; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 1});
    cluster.Plan(kStream, 1, id, {});
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
    items.push_back({1, id, id});
  }
  cluster.Ask(1, kStream, items, GetMode::kUrgent);
  for (std::size_t i = 0; i < items.size(); ++i) {
    cluster.Settle();
    cluster.Advance(milliseconds(10));
  }
  ASSERT_EQ(cluster.replies(1).size(), items.size());
  for (const auto& reply : cluster.replies(1))
    EXPECT_EQ(std::get<wire::SampleReply>(reply.message).answer, Answer::kPeer);
  EXPECT_EQ(cluster.cache(1).relay_bytes(), 0U);
}

TEST(DatasetCache, AHomeThatNamesAWrongHolderIsPutRight) {
  LoopbackCluster cluster(Equal(3, 10));
  for (const wire::MemberId wrong : {wire::MemberId{1}, wire::MemberId{2}}) {  // the asker, another
    for (std::size_t home = 0; home < 3; ++home)
      cluster.cache(home).OnHolding(wrong, {.gained = {7}});
    EXPECT_NE(cluster.Get(0, kStream, {0, 3, 7}, GetMode::kUrgent).lease, 0U) << wrong;
  }
}

TEST(DatasetCache, APushThatDoesNotComeIsReadWhereItLies) {
  LoopbackCluster cluster(Equal(2, 30));
  for (SampleId id = 0; id < 11; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 2});
    cluster.Read(1, kStream, {0, id, id});  // fills node 2 with its reserve
  }
  cluster.Plan(kStream, 0, 20, {.keep = true, .keep_at = 2});
  cluster.Plan(kStream, 1, 20, {});
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 20, 20}));
  cluster.Ask(1, kStream, {{1, 20, 20}}, GetMode::kUrgent);
  cluster.Settle();
  EXPECT_TRUE(cluster.replies(1).empty()) << "it is announced";
  cluster.Advance(milliseconds(250));
  cluster.Settle();
  ASSERT_FALSE(cluster.replies(1).empty());
  EXPECT_EQ(std::get<wire::SampleReply>(cluster.replies(1).front().message).answer, Answer::kPeer);
}

TEST(DatasetCache, ARankThatRunsAheadGetsACopyAndTheSampleWaits) {
  LoopbackCluster cluster(Equal(2, 10));
  cluster.Plan(kStream, 0, 0, {.keep = true, .keep_at = 1});
  cluster.Plan(kStream, 1, 9, {.here = true, .keep = true, .keep_at = 2});
  cluster.Plan(kStream, 2, 0, {.here = true});
  cluster.Read(0, kStream, {0, 0, 7});
  // Node 2's rank is already in pass 2, node 1's has not read it in pass 1.
  EXPECT_FALSE(cluster.Read(1, kStream, {2, 0, 7}));
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  // When it does, nobody waits for the sample any more.
  EXPECT_FALSE(cluster.Read(0, kStream, {1, 9, 7}));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(cluster.cache(1).tier().samples(), 0U);
}

TEST(DatasetCache, FourNodesThatAskTogetherReadTheStoreOnce) {
  LoopbackCluster cluster(Equal(4, 10));
  for (std::size_t node = 0; node < 4; ++node) {
    cluster.Plan(node, 0, 0, {.keep = true, .keep_at = 1});
  }
  const auto first = cluster.Get(0, 0, {0, 0, 7});
  EXPECT_EQ(first.answer, Answer::kMissKeep);
  for (std::size_t node = 1; node < 4; ++node) {
    EXPECT_EQ(cluster.Get(node, node, {0, 0, 7}).answer, Answer::kOnItsWay);
  }
  cluster.Put(0, 0, {0, 0, 7}, first.lease);
  for (std::size_t node = 1; node < 4; ++node) {
    EXPECT_EQ(cluster.Get(node, node, {0, 0, 7}, GetMode::kUrgent).answer, Answer::kPeer);
  }
}

TEST(DatasetCache, AnUrgentReadWaitsForTheLeaseButNotForEver) {
  LoopbackCluster cluster(Equal(2, 10));
  EXPECT_EQ(cluster.Get(0, kStream, {0, 0, 7}).answer, Answer::kMissKeep);
  const auto reply = cluster.Get(1, kStream, {0, 1, 7}, GetMode::kUrgent);
  EXPECT_TRUE(reply.answer == Answer::kMissKeep || reply.answer == Answer::kMissDrop);
}

TEST(DatasetCache, APeerThatIsGoneIsAMiss) {
  LoopbackCluster cluster(Equal(2, 40));
  for (SampleId id = 0; id < 5; ++id) {
    cluster.Plan(kStream, 0, id, {.keep = true, .keep_at = 2});
    cluster.Read(1, kStream, {0, id, id});
  }
  cluster.CutOff(1);
  for (SampleId id = 0; id < 5; ++id) {
    const auto reply = cluster.Get(0, kStream, {1, id, id}, GetMode::kUrgent);
    EXPECT_TRUE(reply.answer == Answer::kMissKeep || reply.answer == Answer::kMissDrop);
  }
}

TEST(DatasetCache, BeforeAPlanIsKnownSamplesStayWithTheirReaderAndAreObeyedLater) {
  LoopbackCluster cluster(Equal(2, 10));
  for (const SampleId id : {SampleId{1}, SampleId{2}, SampleId{3}}) {
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  }
  EXPECT_EQ(cluster.cache(0).tier().samples(), 3U);
  EXPECT_TRUE(cluster.cache(0).retention_manager().Inventory().empty());
  cluster.Plan(kStream, 0, 1, {.keep = true, .keep_at = 1});
  cluster.Plan(kStream, 0, 2, {.keep = true, .keep_at = 2});
  cluster.Plan(kStream, 0, 3, {});
  cluster.cache(0).retention_manager().OnNewPlan({});
  cluster.Settle();
  EXPECT_NE(cluster.cache(0).tier().Find(1), nullptr);
  EXPECT_NE(cluster.cache(1).tier().Find(2), nullptr);
  EXPECT_EQ(cluster.cache(0).tier().Find(2), nullptr);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(cluster.cache(0).retention_manager().Inventory(), std::vector<SampleId>{1});
}

TEST(DatasetCache, WhatAStreamThatWasNeverPlannedHasReadIsFoundByTheNext) {
  LoopbackCluster cluster(Equal(1, 10));
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 1, 5}));
  EXPECT_TRUE(cluster.cache(0).retention_manager().Inventory().empty());
  cluster.cache(0).retention_manager().OnStreamEnded(kStream);
  EXPECT_EQ(cluster.cache(0).retention_manager().Inventory(), std::vector<SampleId>{5});
}

TEST(DatasetCache, TheNextPlanGivesUpWhatALatePassOfAStreamThatIsOverKept) {
  LoopbackCluster cluster(Equal(1, 10));
  cluster.Plan(kStream, 7, 0, {.keep = true, .keep_at = 1});
  cluster.Read(0, kStream, {7, 0, 7});
  cluster.cache(0).retention_manager().Evict(7, 1);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 0U) << "it was kept again since";
  cluster.cache(0).retention_manager().OnStreamEnded(kStream);
  cluster.cache(0).retention_manager().Evict(7, 1);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U);
}

TEST(DatasetCache, WhatWasKeptForAPassThatIsOverIsGivenUp) {
  LoopbackCluster cluster(Equal(1, 10));
  cluster.Plan(kStream, 0, 0, {.keep = true, .keep_at = 1});
  cluster.Read(0, kStream, {0, 0, 7});
  cluster.cache(0).retention_manager().OnPassReached(kStream, 1);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 0U);
  cluster.cache(0).retention_manager().OnPassReached(kStream, 2);
  EXPECT_EQ(cluster.cache(0).retention_manager().spare_bytes(), 100U);
  EXPECT_EQ(cluster.cache(0).counters().dropped_stale, 1U);
}

TEST(DatasetCache, PinKeepsAtTheHomeUntilFullAndNeverEvicts) {
  auto options = Equal(4, 100);
  options.retention = Retention::kPin;
  LoopbackCluster cluster(options);  // room for 10 samples a node
  for (SampleId id = 0; id < 100; ++id)
    cluster.Read(id % 4, kStream, {0, id, id});
  cluster.Settle();
  std::size_t held = 0;
  for (std::size_t node = 0; node < 4; ++node) {
    held += cluster.cache(node).tier().samples();
    EXPECT_LE(cluster.cache(node).tier().used(), 1000U);
  }
  EXPECT_EQ(held, 40U);
  int store_reads = 0;
  for (SampleId id = 0; id < 100; ++id) {
    store_reads += cluster.Read((id + 1) % 4, kStream, {1, id, id}) ? 1 : 0;
  }
  EXPECT_EQ(store_reads, 60);
}

TEST(DatasetCache, AShareThatShrinksIsTrimmedToTheLongestUnusedFirst) {
  auto options = Equal(1, 100);
  options.retention = Retention::kPin;
  LoopbackCluster cluster(options);
  for (SampleId id = 0; id < 10; ++id)
    cluster.Read(0, kStream, {0, id, id});
  cluster.Read(0, kStream, {0, 10, 0});
  cluster.cache(0).SetBudget(Retention::kPin, 300, 6);
  cluster.cache(0).retention_manager().TrimToCapacity();
  EXPECT_EQ(cluster.cache(0).tier().used(), 300U);
  for (const SampleId id : {0U, 8U, 9U})
    EXPECT_NE(cluster.cache(0).tier().Find(id), nullptr) << id;
  cluster.cache(0).SetBudget(Retention::kPin, 0, 0);
  cluster.cache(0).retention_manager().TrimToCapacity();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 0U);
}

TEST(DatasetCache, PinFillsTheOthersThroughAReaderThatIsFull) {
  auto options = Equal(4, 100);
  options.retention = Retention::kPin;
  LoopbackCluster cluster(options);
  for (SampleId id = 0; id < 100; ++id)
    cluster.Read(0, kStream, {0, id, id});
  for (std::size_t node = 0; node < 4; ++node)
    EXPECT_EQ(cluster.cache(node).tier().used(), 1000U) << node;
  EXPECT_EQ(cluster.cache(0).push_queue().samples(), 0U);
}

TEST(DatasetCache, ReadsAtAPeerWaitForTheTransitReserve) {
  LoopbackCluster cluster(Equal(2, 3));  // the reserve is one sample
  for (SampleId id = 0; id < 3; ++id)
    EXPECT_TRUE(cluster.Read(1, kStream, {0, id, id}));
  std::vector<wire::ReadItem> items;
  for (SampleId id = 0; id < 3; ++id)
    items.push_back({0, 10 + id, id});
  for (std::size_t round = 3; round > 0; --round) {
    cluster.replies(0).clear();
    cluster.Ask(0, kStream, items);
    cluster.Settle();
    ASSERT_EQ(cluster.replies(0).size(), round);
    for (const auto& reply : cluster.replies(0)) {
      const auto& answer = std::get<wire::SampleReply>(reply.message);
      if (answer.answer == Answer::kPeer) {
        items.erase(items.begin() + answer.index);
      } else {
        EXPECT_EQ(answer.answer, Answer::kOnItsWay);
      }
    }
  }
  EXPECT_TRUE(items.empty());
  cluster.replies(0).clear();
  EXPECT_EQ(cluster.cache(0).relay_bytes(), 0U);
  EXPECT_EQ(cluster.cache(0).counters().misses, 0U);
}

TEST(DatasetCache, MoreWaitingReadsThanAMessageHoldsAreAskedInSeveral) {
  constexpr std::uint32_t kReads = 3 * wire::kMaxItems;
  auto options = Equal(2, kReads, 1);
  options.retention = Retention::kNone;
  LoopbackCluster cluster(options);
  std::vector<wire::ReadItem> items;
  for (SampleId id = 0; id < kReads; ++id) {
    items.push_back({0, id, id});
    cluster.cache(1).OnHolding(1, {.gained = {id}});
  }
  const auto some = [&](std::size_t begin) {
    const auto from = items.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::vector(from, from + static_cast<std::ptrdiff_t>(wire::kMaxItems));
  };
  // The other node believes that the asker has them: all wait, and are asked for again together.
  for (std::size_t begin = 0; begin < kReads; begin += wire::kMaxItems)
    cluster.Ask(0, kStream, some(begin), GetMode::kUrgent);
  for (int i = 0; i < 20; ++i) {
    cluster.Settle();
    cluster.Advance(milliseconds(10));
  }
  EXPECT_EQ(cluster.replies(0).size(), kReads);
}

TEST(DatasetCache, WhoIsNoMemberHoldsNothing) {
  LoopbackCluster cluster(Equal(2, 10));
  for (std::size_t home = 0; home < 2; ++home)
    cluster.cache(home).OnHolding(9, {.gained = {7}});
  EXPECT_NE(cluster.Get(0, kStream, {0, 3, 7}, GetMode::kUrgent).lease, 0U);
}

TEST(DatasetCache, LruKeepsTheLatest) {
  auto options = Equal(1, 100);
  options.retention = Retention::kLru;
  LoopbackCluster cluster(options);  // room for 10
  for (SampleId id = 0; id < 12; ++id)
    EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  EXPECT_FALSE(cluster.Read(0, kStream, {0, 50, 2}));
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 51, 12}));  // evicts 3, not 2
  EXPECT_FALSE(cluster.Read(0, kStream, {0, 52, 2}));
  EXPECT_TRUE(cluster.Read(0, kStream, {0, 53, 3}));
}

TEST(DatasetCache, NoneKeepsNothing) {
  auto options = Equal(2, 10);
  options.retention = Retention::kNone;
  LoopbackCluster cluster(options);
  for (int round = 0; round < 2; ++round) {
    for (SampleId id = 0; id < 10; ++id)
      EXPECT_TRUE(cluster.Read(0, kStream, {0, id, id}));
  }
  EXPECT_EQ(cluster.cache(0).tier().used() + cluster.cache(1).tier().used(), 0U);
}

TEST(DatasetCache, ItemsThatAreNotInTheDatasetAreMisses) {
  LoopbackCluster cluster(Equal(1, 10));
  EXPECT_EQ(cluster.Get(0, kStream, {0, 0, 10}).answer, Answer::kMissDrop);
  EXPECT_EQ(cluster.cache(0).Receive({.id = 10}, 100), nullptr);
  EXPECT_EQ(cluster.cache(0).Receive({.id = 9}, 99), nullptr);  // not the length in the manifest
}

TEST(DatasetCache, BytesThatArrivedWrongAreNotKept) {
  LoopbackCluster cluster(Equal(1, 10));
  auto buffer = cluster.cache(0).Receive({.id = 1}, 100);
  ASSERT_NE(buffer, nullptr);
  cluster.cache(0).OnPut({.client = LoopbackCluster::kSidecar}, 0, {.item = {0, 0, 1}}, buffer,
                         {Code::kDataLoss, "checksum"}, {});
  EXPECT_EQ(cluster.cache(0).tier().used(), 0U);
  EXPECT_EQ(cluster.cache(0).counters().bad_bytes, 1U);
}

TEST(TransitReserve, IsAFiftiethAndMoreWhereFewSamplesFit) {
  const plan::Sizes common(std::vector<std::uint32_t>(10, 1000));
  EXPECT_EQ(TransitReserve(100'000'000, common), 2'000'000U);
  EXPECT_EQ(TransitReserve(2'000'000, common), 128_KiB);
  EXPECT_EQ(TransitReserve(100'000, common), 25'000U);
  const plan::Sizes small(std::vector<std::uint32_t>(10, 100));
  EXPECT_EQ(TransitReserve(1'000'000, small), 25'600U);
  EXPECT_EQ(TransitReserve(0, common), 0U);
  EXPECT_EQ(TransitReserve(1000, plan::Sizes(std::vector<std::uint32_t>())), 20U);
}

}  // namespace
}  // namespace optcache::node
