// Leases: who has them, who ends them, and how they go back.

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;
using wire::GetMode;

constexpr StreamId kLeaseStream = 42;

LoopbackCluster::Options SamplesAt(std::size_t nodes, std::size_t samples,
                                   std::uint32_t size = 100) {
  return {.nodes = nodes, .sizes = std::vector<std::uint32_t>(samples, size)};
}

TEST(DatasetLeases, NobodyEndsTheLeaseOfAnother) {
  LoopbackCluster cluster(SamplesAt(2, 10));
  for (SampleId id = 0; id < 10; ++id) {  // Some have their home here, some there.
    const auto lease = cluster.Get(0, kLeaseStream, {0, id, id}, GetMode::kUrgent).lease;
    ASSERT_NE(lease, 0U);
    cluster.UpdateLease(0, LoopbackCluster::kSidecar + 1, wire::LeaseEvent::kFailed, id, lease);
    EXPECT_EQ(cluster.Get(1, kLeaseStream, {0, id, id}).answer, Answer::kOnItsWay) << id;
    cluster.UpdateLease(0, LoopbackCluster::kSidecar, wire::LeaseEvent::kFailed, id, lease);
    EXPECT_NE(cluster.Get(1, kLeaseStream, {0, id, id}).lease, 0U) << id;
  }
}

TEST(DatasetLeases, KnowsHowManyLeasesAClientHas) {
  LoopbackCluster cluster(SamplesAt(1, 10));
  const auto first = cluster.Get(0, kLeaseStream, {0, 1, 1}, GetMode::kUrgent);
  const auto second = cluster.Get(0, kLeaseStream, {0, 2, 2}, GetMode::kUrgent);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), 2U);
  cluster.UpdateLease(0, LoopbackCluster::kSidecar, wire::LeaseEvent::kRenew, 1, first.lease);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), 2U);
  cluster.UpdateLease(0, LoopbackCluster::kSidecar, wire::LeaseEvent::kDone, 1, first.lease);
  cluster.Put(0, kLeaseStream, {0, 2, 2}, second.lease);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), 0U);
}

TEST(DatasetLeases, TheLeaseOfASidecarThatIsGoneIsForTheNext) {
  LoopbackCluster cluster(SamplesAt(2, 10));
  for (SampleId id = 0; id < 10; ++id)  // some at home here, some at home there
    EXPECT_NE(cluster.Get(0, kLeaseStream, {0, id, id}).lease, 0U);
  EXPECT_EQ(cluster.Get(1, kLeaseStream, {0, 17, 7}).answer, Answer::kOnItsWay);
  cluster.LoseSidecar(0);
  for (SampleId id = 0; id < 10; ++id)
    EXPECT_NE(cluster.Get(1, kLeaseStream, {0, id + 10, id}).lease, 0U);
}

// From when it is killed, another node's trainer waits for none of them.
TEST(DatasetLeases, TheLeasesOfANodeThatIsGoneEndAtOnce) {
  LoopbackCluster cluster(SamplesAt(2, 10));
  std::size_t at_home_here = 0;
  for (SampleId id = 0; id < 10; ++id)
    EXPECT_NE(cluster.Get(1, kLeaseStream, {0, id, id}).lease, 0U);
  at_home_here = cluster.cache(0).directory().leases();
  ASSERT_GT(at_home_here, 0U);
  cluster.Kill(1);
  EXPECT_EQ(cluster.cache(0).counters().leases_ended, at_home_here);
  const MonotonicTime killed = cluster.now();
  for (SampleId id = 0; id < 10; ++id) {
    const Answer answer = cluster.Get(0, kLeaseStream, {0, id, id}, GetMode::kUrgent).answer;
    EXPECT_TRUE(answer == Answer::kMissKeep || answer == Answer::kMissDrop) << id;
  }
  EXPECT_LE(cluster.now() - killed, std::chrono::milliseconds(20));
}

TEST(DatasetLeases, WhatWaitedForANodeThatIsGoneWaitsNoLonger) {
  LoopbackCluster cluster(SamplesAt(2, 10));
  for (SampleId id = 0; id < 10; ++id)
    EXPECT_NE(cluster.Get(1, kLeaseStream, {0, id, id}).lease, 0U);
  for (SampleId id = 0; id < 10; ++id)
    cluster.Ask(0, kLeaseStream, {{0, id, id}}, GetMode::kUrgent);
  cluster.Settle();
  EXPECT_TRUE(cluster.replies(0).empty());
  cluster.Kill(1);
  cluster.Advance(std::chrono::milliseconds(10));
  cluster.Settle();
  EXPECT_EQ(cluster.replies(0).size(), 10U);
}

// The homes answer after the sidecar has gone.
TEST(DatasetLeases, ALeaseThatComesForASidecarThatIsGoneGoesBack) {
  LoopbackCluster cluster(SamplesAt(2, 10));
  for (SampleId id = 0; id < 10; ++id)
    cluster.Ask(0, kLeaseStream, {{0, id, id}});  // looked up, not answered yet
  cluster.LoseSidecar(0);
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), 0U);
  EXPECT_EQ(cluster.cache(0).directory().leases() + cluster.cache(1).directory().leases(), 0U);
}

// Node 0 asks for `gets` full Gets of samples, about half of which have their home at node 1.
void AskForMany(LoopbackCluster& cluster, SampleId gets) {
  for (SampleId get = 0; get < gets; ++get) {
    std::vector<wire::ReadItem> items;
    for (auto id = static_cast<SampleId>(get * wire::kMaxItems); items.size() < wire::kMaxItems;
         ++id)
      items.push_back({0, id, id});
    cluster.Ask(0, kLeaseStream, std::move(items));
  }
  cluster.Settle();
}

TEST(DatasetLeases, MoreLeasesOfASidecarThatIsGoneThanAMessageHoldsGoInSeveral) {
  constexpr SampleId kGets = 6;
  LoopbackCluster cluster(SamplesAt(2, kGets * wire::kMaxItems, 1));
  AskForMany(cluster, kGets);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), kGets * wire::kMaxItems);
  EXPECT_GT(cluster.cache(1).directory().leases(), 2 * wire::kMaxItems);
  cluster.LoseSidecar(0);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), 0U);
  EXPECT_EQ(cluster.cache(0).directory().leases(), 0U);
  EXPECT_EQ(cluster.cache(1).directory().leases(), 0U);
}

TEST(DatasetLeases, MoreLeasesThanAreGrantedGoBackInSeveralMessages) {
  constexpr std::size_t kGrantsMax = 262'144;
  constexpr SampleId kGets = kGrantsMax / wire::kMaxItems + 6;
  LoopbackCluster cluster(SamplesAt(2, kGets * wire::kMaxItems, 1));
  AskForMany(cluster, kGets);
  EXPECT_EQ(cluster.cache(0).leases(LoopbackCluster::kSidecar), kGrantsMax);
  EXPECT_EQ(cluster.cache(0).directory().leases() + cluster.cache(1).directory().leases(),
            kGrantsMax);
}

}  // namespace
}  // namespace optcache::node
