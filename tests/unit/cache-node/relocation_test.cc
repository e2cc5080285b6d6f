#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using std::chrono::seconds;

constexpr StreamId kMovedStream = 42;

LoopbackCluster::Options NodesAlike(std::size_t nodes, std::size_t samples) {
  return {.nodes = nodes, .sizes = std::vector<std::uint32_t>(samples, 100)};
}

TEST(Relocation, WhatThePlanHasNoRoomForGoesWhereItSaysInItsOrder) {
  LoopbackCluster cluster(NodesAlike(3, 10));
  for (SampleId id = 0; id < 5; ++id) {
    cluster.Plan(kMovedStream, 0, id, {.keep = true, .keep_at = 1});
    EXPECT_TRUE(cluster.Read(0, kMovedStream, {0, id, id}));
  }
  // Sample 9 is not here.
  EXPECT_EQ(cluster.cache(0).retention_manager().Relocate(
                {{4, 3}, {9, 3}, {1, 2}, {0, 3}}, RetentionManager::OnDisk::kGoes,
                cluster.now() + seconds(10), cluster.now()),
            3U);
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 2U);
  EXPECT_NE(cluster.cache(1).tier().Find(1), nullptr);
  EXPECT_NE(cluster.cache(2).tier().Find(4), nullptr);
  EXPECT_NE(cluster.cache(2).tier().Find(0), nullptr);
  const Counters& counters = cluster.cache(0).counters();
  EXPECT_EQ(counters.relocated, 3U);
  EXPECT_EQ(counters.relocated_bytes, 300U);
  EXPECT_EQ(counters.relocations_lost, 0U);
  EXPECT_EQ(counters.moves, 0U);  // that follow reads
  for (SampleId id = 0; id < 5; ++id)
    EXPECT_FALSE(cluster.Read(1, 0, {0, id, id})) << id;
}

TEST(Relocation, WhatNobodyTakesInTimeIsLostAndCounted) {
  LoopbackCluster cluster(NodesAlike(2, 10));
  cluster.Plan(kMovedStream, 0, 1, {.keep = true, .keep_at = 1});
  EXPECT_TRUE(cluster.Read(0, kMovedStream, {0, 1, 1}));
  cluster.CutOff(1);
  (void)cluster.cache(0).retention_manager().Relocate({{1, 2}}, RetentionManager::OnDisk::kGoes,
                                                      cluster.now() + seconds(10), cluster.now());
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  cluster.Advance(seconds(10));
  cluster.Settle();
  EXPECT_EQ(cluster.cache(0).push_queue().samples(), 0U);
  EXPECT_TRUE(cluster.cache(0).retention_manager().Inventory().empty());
  EXPECT_EQ(cluster.cache(0).counters().relocations_lost, 1U);
}

TEST(Relocation, ANodeThatEndsKeepsItsBudgetAndGivesNothingAwayByItself) {
  LoopbackCluster cluster(NodesAlike(2, 10));
  cluster.Plan(kMovedStream, 0, 1, {.keep = true, .keep_at = 1});
  EXPECT_TRUE(cluster.Read(0, kMovedStream, {0, 1, 1}));
  cluster.cache(0).OnEnding();
  cluster.cache(0).SetBudget(Retention::kOptimal, 0, 0);
  cluster.Place({2});
  EXPECT_EQ(cluster.cache(0).tier().samples(), 1U);
  // What is read here still goes on to others from here.
  cluster.Plan(kMovedStream, 0, 2, {.keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(0, kMovedStream, {0, 2, 2}));
  cluster.Settle();
  EXPECT_NE(cluster.cache(1).tier().Find(2), nullptr);
}

// Writes down what is pushed, and answers nothing.
struct SilentPeers final : Effects {
  std::uint32_t NewRequestId() override { return next_request++; }
  bool Reply(ClientId, std::uint32_t, const wire::Message&, const cache::SampleRef&) override {
    return true;
  }
  bool Send(wire::MemberId, std::uint32_t request_id, const wire::Message& message,
            const cache::SampleRef&) override {
    if (const auto* push = std::get_if<wire::Push>(&message)) {
      pushed.push_back(push->item.id);
      requests.push_back(request_id);
    }
    return true;
  }
  std::uint32_t next_request = 1;
  std::vector<SampleId> pushed;
  std::vector<std::uint32_t> requests;  // of these pushes
};

TEST(Relocation, WhatIsReadSoonestIsPushedFirst) {
  SilentPeers peers;
  Counters counters;
  PassCounts passes;
  PushQueue push_queue(1, peers, counters, passes, {.in_flight = 2});
  const auto bytes = std::make_shared<cache::SampleBytes>(10);
  const MonotonicTime now{seconds(1)};
  const auto add = [&](SampleId id, std::uint64_t turn) {
    push_queue.Add({.id = id, .receiver = 2, .turn = turn, .relocates = true},
                   {.bytes = bytes, .size = 10}, now);
  };
  add(1, 4);
  add(2, 3);
  add(3, 2);
  add(4, 1);
  add(2, 5);  // takes the place of its first order
  push_queue.Tick(now);
  EXPECT_EQ(peers.pushed, (std::vector<SampleId>{4, 3}));
  EXPECT_TRUE(push_queue.OnReply(4, true, now));
  push_queue.Cancel(3);
  push_queue.Tick(now);
  EXPECT_EQ(peers.pushed, (std::vector<SampleId>{4, 3, 1, 2}));
  EXPECT_EQ(push_queue.samples(), 2U);
}

TEST(Relocation, AnAnswerToAReplacedOrderDoesNotCount) {
  SilentPeers peers;
  ScriptedPlanLookup plan_lookup;
  plan_lookup.plan_lookup[{kMovedStream, 0, 1}] = {.keep = true, .keep_at = 1};
  DatasetCache cache(
      {.self = 1, .capacity = 1000, .sizes = plan::Sizes(std::vector<std::uint32_t>(10, 100))},
      ReadDeadlines{}, plan_lookup, peers);
  cache.SetMembers({1, 2, 3});
  const MonotonicTime now{seconds(1)};
  cache.OnPut({.client = LoopbackCluster::kSidecar}, 0, {.stream = kMovedStream, .item = {0, 1, 1}},
              cache.Receive({.id = 1}, 100), OkStatus(), now);
  for (const wire::MemberId receiver : {2U, 3U}) {
    (void)cache.retention_manager().Relocate({{1, receiver}}, RetentionManager::OnDisk::kGoes,
                                             now + seconds(10), now);
    cache.Tick(now);
  }
  ASSERT_EQ(peers.pushed, (std::vector<SampleId>{1, 1}));
  cache.OnStoreReply(peers.requests[0], {.id = 1, .accepted = true}, now);
  EXPECT_NE(cache.tier().Find(1), nullptr) << "member 3 may have no room for it";
  cache.OnStoreReply(peers.requests[1], {.id = 1, .accepted = true}, now);
  EXPECT_EQ(cache.tier().Find(1), nullptr);
}

TEST(Relocation, ALateAnswerCountsForAPushThatWasRepeated) {
  SilentPeers peers;
  Counters counters;
  PassCounts passes;
  PushQueue push_queue(1, peers, counters, passes, {});
  MonotonicTime now{seconds(1)};
  push_queue.Add({.id = 1, .receiver = 2},
                 {.bytes = std::make_shared<cache::SampleBytes>(10), .size = 10}, now);
  push_queue.Tick(now);
  now += seconds(3);
  push_queue.Tick(now);
  ASSERT_EQ(peers.pushed, (std::vector<SampleId>{1, 1}));
  EXPECT_TRUE(push_queue.Awaits(1, peers.requests[0]));
  EXPECT_TRUE(push_queue.OnReply(1, true, now));
}

}  // namespace
}  // namespace optcache::node
