#include "cache-node/retention/private_entries.h"

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;
using wire::GetMode;

constexpr StreamId kBorrowerStream = 7;
constexpr BorrowerId kSpeech = 1;
constexpr BorrowerId kSound = 2;

// 1000 bytes of capacity and 100 of reserve a node.
LoopbackCluster::Options Samples(std::size_t nodes, std::size_t samples,
                                 Retention retention = Retention::kOptimal) {
  return {
      .nodes = nodes, .retention = retention, .sizes = std::vector<std::uint32_t>(samples, 100)};
}

const PrivateEntries& CopiesOf(LoopbackCluster& cluster, std::size_t node = 0) {
  return cluster.cache(node).retention_manager().private_entries();
}

// --- Who sees them ------------------------------------------------------------------------------

TEST(PrivateEntries, AreHitsForTheirBorrower) {
  LoopbackCluster cluster(Samples(1, 10));
  cluster.Be(kSpeech);
  EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, 3, 7}));
  EXPECT_EQ(cluster.Get(0, kBorrowerStream, {1, 5, 7}).answer, Answer::kHere);
  EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100, kSpeech));
  EXPECT_EQ(cluster.cache(0).counters().hits_local, 1U);
}

TEST(PrivateEntries, NeverReachAnotherNamespaceOnAnyNode) {
  LoopbackCluster cluster(Samples(3, 10));
  for (SampleId id = 0; id < 10; ++id) {  // some at home here, some there
    cluster.Be(kSpeech);
    EXPECT_TRUE(cluster.Read(0, 0, {0, id, id}));
    for (const BorrowerId other : {kNoBorrower, kSound}) {
      cluster.Be(other);
      for (std::size_t node = 0; node < 3; ++node) {
        const auto answer = cluster.Get(node, 0, {0, id, id}, GetMode::kUrgent);
        EXPECT_TRUE(answer.answer == Answer::kMissKeep || answer.answer == Answer::kMissDrop);
        cluster.UpdateLease(node, LoopbackCluster::kSidecar, wire::LeaseEvent::kFailed, id,
                            answer.lease);
      }
    }
  }
  EXPECT_EQ(CopiesOf(cluster).samples(), 10U);
}

TEST(PrivateEntries, TwoBorrowersHaveEachTheirOwn) {
  LoopbackCluster cluster(Samples(1, 10));
  for (const BorrowerId borrower : {kSpeech, kSound}) {
    cluster.Be(borrower);
    EXPECT_TRUE(cluster.Read(0, 0, {0, 0, 7}));
  }
  for (const BorrowerId borrower : {kSpeech, kSound}) {
    cluster.Be(borrower);
    EXPECT_FALSE(cluster.Read(0, 0, {0, 0, 7}));
    EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100, borrower));
  }
}

TEST(PrivateEntries, AreNeitherAnnouncedNorListedNorGivenAwayNorRelayed) {
  LoopbackCluster cluster(Samples(2, 10));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_TRUE(cluster.Read(0, 0, {0, id, id}));
  EXPECT_EQ(cluster.cache(0).directory().samples() + cluster.cache(1).directory().samples(), 0U);
  EXPECT_TRUE(cluster.cache(0).retention_manager().Inventory().empty());
  EXPECT_EQ(cluster.GiveAway(0), 0U);
  // A node that asks for one all the same.
  cluster.cache(0).OnGet({.client = LoopbackCluster::kFirstNode + 2, .member = 2}, 99,
                         {.mode = GetMode::kPeer, .items = {{0, 0, 1}}}, {});
  cluster.Settle();
  EXPECT_EQ(cluster.cache(1).tier().samples(), 0U);
  EXPECT_EQ(cluster.cache(1).counters().hits_peer, 0U);
  // The homes change: what is here is announced anew.
  cluster.cache(0).SetMembers({1});
  cluster.cache(0).SetMembers({1, 2});
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).directory().samples() + cluster.cache(1).directory().samples(), 0U);
}

TEST(PrivateEntries, GoWithTheRightToUseTheDataset) {
  LoopbackCluster cluster(Samples(1, 10));
  for (const BorrowerId borrower : {kSpeech, kSound}) {
    cluster.Be(borrower);
    EXPECT_TRUE(cluster.Read(0, 0, {0, 0, 7}));
  }
  cluster.cache(0).retention_manager().OnBorrowerGone(kSpeech);
  EXPECT_EQ(cluster.cache(0).tier().used(), 100U);
  EXPECT_FALSE(cluster.Read(0, 0, {0, 1, 7})) << "the other's stays";
}

// --- A copy for all takes their place -----------------------------------------------------------

TEST(PrivateEntries, GiveTheirPlaceToTheOwnersPut) {
  LoopbackCluster cluster(Samples(1, 10));
  for (const BorrowerId borrower : {kSpeech, kSound, kNoBorrower}) {
    cluster.Be(borrower);
    EXPECT_TRUE(cluster.Read(0, 0, {0, 0, 7}));
  }
  EXPECT_EQ(CopiesOf(cluster).samples(), 0U);
  EXPECT_EQ(cluster.cache(0).tier().used(), 100U);
  for (const BorrowerId borrower : {kSpeech, kSound}) {
    cluster.Be(borrower);
    EXPECT_FALSE(cluster.Read(0, 0, {0, 1, 7}));
    EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100));
  }
}

TEST(PrivateEntries, GiveTheirPlaceToAPush) {
  LoopbackCluster cluster(Samples(2, 10));
  cluster.Be(kSpeech);
  EXPECT_TRUE(cluster.Read(1, 0, {0, 0, 7}));
  cluster.Be(kNoBorrower);
  cluster.Plan(kBorrowerStream, 0, 0, {.keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, 0, 7}));
  cluster.Settle();
  EXPECT_EQ(CopiesOf(cluster, 1).samples(), 0U);
  EXPECT_EQ(cluster.cache(1).tier().samples(), 1U);
  EXPECT_EQ(cluster.cache(1).tier().used(), 100U);
}

TEST(PrivateEntries, AreNotMadeOfWhatIsHereForAll) {
  LoopbackCluster cluster(Samples(1, 10));
  EXPECT_TRUE(cluster.Read(0, 0, {0, 0, 7}));
  cluster.Be(kSpeech);
  EXPECT_TRUE(cluster.Put(0, 0, {0, 0, 7}));  // It was being read when the other came.
  EXPECT_EQ(CopiesOf(cluster).samples(), 0U);
  EXPECT_EQ(cluster.cache(0).tier().used(), 100U);
  EXPECT_FALSE(cluster.Read(0, 0, {0, 1, 7}));
  EXPECT_EQ(cluster.last_payload(), BytesOf(7, 100));
}

TEST(PrivateEntries, ASecondPutChangesNothing) {
  LoopbackCluster cluster(Samples(1, 10));
  cluster.Be(kSpeech);
  EXPECT_TRUE(cluster.Put(0, 0, {0, 0, 7}));
  EXPECT_TRUE(cluster.Put(0, 0, {0, 1, 7}));
  EXPECT_EQ(cluster.cache(0).tier().used(), 100U);
}

// --- The plan -----------------------------------------------------------------------------------

TEST(PrivateEntries, AreKeptAndDroppedByThePlan) {
  LoopbackCluster cluster(Samples(1, 10));
  cluster.Be(kSpeech);
  cluster.Plan(kBorrowerStream, 0, 0, {.keep = true, .keep_at = 1});
  cluster.Plan(kBorrowerStream, 0, 1, {});
  cluster.Plan(kBorrowerStream, 1, 0, {.here = true});
  EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, 0, 7}));
  EXPECT_EQ(cluster.Get(0, kBorrowerStream, {0, 1, 8}).answer, Answer::kMissDrop);
  EXPECT_FALSE(cluster.Put(0, kBorrowerStream, {0, 1, 8})) << "nor if it is put all the same";
  EXPECT_FALSE(cluster.Read(0, kBorrowerStream, {1, 0, 7}));
  EXPECT_EQ(cluster.cache(0).tier().used(), 0U) << "read, and the plan drops it";
}

TEST(PrivateEntries, DoNotMoveToTheNodeOfTheNextReader) {
  LoopbackCluster cluster(Samples(2, 10));
  cluster.Be(kSpeech);
  cluster.Plan(kBorrowerStream, 0, 0, {.keep = true, .keep_at = 2});
  EXPECT_EQ(cluster.Get(0, kBorrowerStream, {0, 0, 7}, GetMode::kUrgent).answer, Answer::kMissDrop);
  cluster.Plan(kBorrowerStream, 0, 1, {.keep = true, .keep_at = 1});
  cluster.Plan(kBorrowerStream, 1, 0, {.here = true, .keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, 1, 8}));
  EXPECT_FALSE(cluster.Read(0, kBorrowerStream, {1, 0, 8}));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().used() + cluster.cache(1).tier().used(), 0U);
  EXPECT_EQ(cluster.cache(0).counters().moves, 0U);
}

TEST(PrivateEntries, WaitForTheirPlanAndThenObeyIt) {
  LoopbackCluster cluster(Samples(2, 10));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 3; ++id)
    EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, id, id}));
  cluster.Plan(kBorrowerStream, 0, 0, {.keep = true, .keep_at = 1});
  cluster.Plan(kBorrowerStream, 0, 1, {.keep = true, .keep_at = 2});
  cluster.Plan(kBorrowerStream, 0, 2, {});
  cluster.cache(0).retention_manager().OnNewPlan({});
  cluster.Settle();
  EXPECT_EQ(CopiesOf(cluster).samples(), 1U);
  EXPECT_EQ(cluster.cache(1).tier().samples(), 0U);
  EXPECT_FALSE(cluster.Read(0, 0, {0, 0, 0}));
}

TEST(PrivateEntries, GoWhenTheirPassIsOverOrThePlanGivesThemUp) {
  LoopbackCluster cluster(Samples(1, 10));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 2; ++id) {
    cluster.Plan(kBorrowerStream, 0, id, {.keep = true, .keep_at = 1});
    EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {0, id, id}));
  }
  cluster.cache(0).retention_manager().Evict(0, 1);
  EXPECT_EQ(CopiesOf(cluster).samples(), 1U);
  cluster.cache(0).retention_manager().OnPassReached(kBorrowerStream, 2);
  EXPECT_EQ(cluster.cache(0).tier().used(), 0U);
}

// A late pass of a stream that is over is no measure of those of its next life.
TEST(PrivateEntries, OfAStreamThatIsOverGoByThePassesOfItsNextLife) {
  LoopbackCluster cluster(Samples(1, 10));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 2; ++id) {
    cluster.Plan(kBorrowerStream, 7, id, {.keep = true, .keep_at = 1});
    EXPECT_TRUE(cluster.Read(0, kBorrowerStream, {7, id, id}));
  }
  cluster.cache(0).retention_manager().Evict(0, 1);
  cluster.cache(0).retention_manager().OnPassReached(kBorrowerStream, 2);
  EXPECT_EQ(CopiesOf(cluster).samples(), 2U) << "they were kept again since";
  cluster.cache(0).retention_manager().OnStreamEnded(kBorrowerStream);
  cluster.cache(0).retention_manager().Evict(0, 1);
  EXPECT_EQ(CopiesOf(cluster).samples(), 1U);
  cluster.cache(0).retention_manager().OnPassReached(kBorrowerStream, 2);
  EXPECT_EQ(CopiesOf(cluster).samples(), 0U);
}

TEST(PrivateEntries, ArePinnedAtTheirHomeAlone) {
  LoopbackCluster cluster(Samples(2, 10, Retention::kPin));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 10; ++id)
    EXPECT_TRUE(cluster.Read(0, 0, {0, id, id}));
  cluster.Settle();
  const std::size_t kept = CopiesOf(cluster).samples();
  EXPECT_GT(kept, 0U);
  EXPECT_LT(kept, 10U);
  EXPECT_EQ(CopiesOf(cluster, 1).samples() + cluster.cache(1).tier().samples(), 0U);
}

TEST(PrivateEntries, OfADatasetThatKeepsNothingThereAreNone) {
  LoopbackCluster cluster(Samples(1, 10, Retention::kNone));
  cluster.Be(kSpeech);
  EXPECT_TRUE(cluster.Read(0, 0, {0, 0, 7}));
  EXPECT_FALSE(cluster.Put(0, 0, {0, 0, 7}));
  EXPECT_EQ(cluster.cache(0).tier().used(), 0U);
}

// --- The budget ---------------------------------------------------------------------------------

TEST(PrivateEntries, StayWithinTheBudget) {
  for (const Retention retention : {Retention::kOptimal, Retention::kPin, Retention::kLru}) {
    LoopbackCluster cluster(Samples(1, 100, retention));
    for (SampleId id = 0; id < 100; ++id) {
      cluster.Be(id % 3);
      cluster.Read(0, 0, {0, id, id});
    }
    const ByteCount budget = retention == Retention::kOptimal ? 1100U : 1000U;
    EXPECT_LE(cluster.cache(0).tier().peak(), budget);
    EXPECT_GE(cluster.cache(0).tier().used(), 1000U);
  }
}

TEST(PrivateEntries, GiveWayToWhatIsForAllAndNeverTakeItsPlace) {
  for (const Retention retention : {Retention::kOptimal, Retention::kPin, Retention::kLru}) {
    LoopbackCluster cluster(Samples(1, 100, retention));
    cluster.Be(kSpeech);
    for (SampleId id = 0; id < 10; ++id)
      cluster.Read(0, 0, {0, id, id});
    EXPECT_EQ(CopiesOf(cluster).samples(), 10U);
    cluster.Be(kNoBorrower);
    for (SampleId id = 20; id < 30; ++id)
      cluster.Read(0, 0, {0, id, id});
    EXPECT_EQ(cluster.cache(0).tier().samples(), 10U);
    cluster.Be(kSpeech);
    for (SampleId id = 40; id < 50; ++id)
      cluster.Read(0, 0, {0, id, id});
    EXPECT_EQ(cluster.cache(0).tier().samples(), 10U);
  }
}

TEST(PrivateEntries, ABorrowerThatComesLaterGetsAsMuch) {
  LoopbackCluster cluster(Samples(1, 100, Retention::kPin));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 50; ++id)
    cluster.Read(0, 0, {0, id, id});
  EXPECT_EQ(CopiesOf(cluster).bytes(), 1000U);
  cluster.Be(kSound);
  for (SampleId id = 0; id < 50; ++id)
    cluster.Read(0, 0, {0, id, id});
  int hits = 0;
  for (SampleId id = 0; id < 50; ++id)
    hits += cluster.Get(0, 0, {1, id, id}, GetMode::kUrgent).answer == Answer::kHere ? 1 : 0;
  EXPECT_EQ(hits, 5) << "and no more";
  EXPECT_EQ(CopiesOf(cluster).bytes(), 1000U);
}

TEST(PrivateEntries, UnderLruABorrowerKeepsItsLatest) {
  LoopbackCluster cluster(Samples(1, 100, Retention::kLru));
  cluster.Be(kSpeech);
  for (SampleId id = 0; id < 12; ++id)
    EXPECT_TRUE(cluster.Read(0, 0, {0, id, id}));
  EXPECT_FALSE(cluster.Read(0, 0, {0, 50, 2}));
  EXPECT_TRUE(cluster.Read(0, 0, {0, 51, 12}));  // evicts 3, not 2
  EXPECT_FALSE(cluster.Read(0, 0, {0, 52, 2}));
  EXPECT_TRUE(cluster.Read(0, 0, {0, 53, 3}));
}

TEST(PrivateEntries, WrongBytesGiveTheirRoomBack) {
  LoopbackCluster cluster(Samples(1, 10));
  auto buffer = cluster.cache(0).Receive({.id = 1, .borrower = kSpeech}, 100);
  ASSERT_NE(buffer, nullptr);
  cluster.cache(0).OnPut({.client = LoopbackCluster::kSidecar, .borrower = kSpeech}, 0,
                         {.item = {0, 0, 1}}, buffer, {Code::kDataLoss, "checksum"}, {});
  EXPECT_EQ(cluster.cache(0).tier().used(), 0U);
  EXPECT_EQ(cluster.cache(0).counters().bad_bytes, 1U);
}

}  // namespace
}  // namespace optcache::node
