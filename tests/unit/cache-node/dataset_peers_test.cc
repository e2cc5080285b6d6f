// What other nodes are asked for, and what becomes of it when they are gone.

#include <gtest/gtest.h>

#include "unit/cache-node/loopback_cluster.h"

namespace optcache::node {
namespace {

using wire::Answer;
using wire::GetMode;

constexpr StreamId kPeersStream = 42;

LoopbackCluster::Options SamplesOn(std::size_t nodes, std::size_t samples,
                                   std::uint32_t size = 100) {
  return {.nodes = nodes, .sizes = std::vector<std::uint32_t>(samples, size)};
}

// No time passes: neither what was asked of it nor what it was to look up is waited for.
TEST(DatasetPeers, WhatAPeerThatIsGoneWasAskedIsAMissAtOnce) {
  LoopbackCluster cluster(SamplesOn(3, 10));
  cluster.Plan(kPeersStream, 0, 3, {.keep = true, .keep_at = 2});
  EXPECT_TRUE(cluster.Read(1, kPeersStream, {0, 3, 7}));
  for (SampleId id = 0; id < 10; ++id)
    cluster.Ask(0, kPeersStream, {{0, 20 + id, id}}, GetMode::kUrgent);
  cluster.Kill(1);
  cluster.Kill(2);
  EXPECT_EQ(cluster.replies(0).size(), 10U);
  for (const auto& reply : cluster.replies(0)) {
    const Answer answer = std::get<wire::SampleReply>(reply.message).answer;
    EXPECT_TRUE(answer == Answer::kMissKeep || answer == Answer::kMissDrop);
  }
  EXPECT_GT(cluster.cache(0).counters().peer_losses, 0U);
  EXPECT_EQ(cluster.cache(0).counters().peer_timeouts, 0U);
}

// It has started again, and its home does not know that yet.
TEST(DatasetPeers, APeerThatDoesNotKnowTheDatasetIsNotAskedAgain) {
  LoopbackCluster cluster(SamplesOn(2, 100));
  const cache::HomeMap homes(0, {1, 2});
  SampleId id = 0;
  while (homes.Home(id) != 1)
    ++id;
  cluster.cache(0).OnHolding(2, {.gained = {id}});
  cluster.Ask(0, kPeersStream, {{0, id, id}}, GetMode::kUrgent);
  EXPECT_TRUE(cluster.replies(0).empty());
  for (std::uint32_t request = 0; request < 10; ++request)
    cluster.cache(0).OnPeerReply(request, {.answer = Answer::kMissDrop}, nullptr, cluster.now());
  ASSERT_EQ(cluster.replies(0).size(), 1U);
}

// All of them may lie at one peer, whose connection would be closed.
TEST(DatasetPeers, ReadsAtPeersWaitWhereTheReserveIsLargerThanWhatAConnectionQueues) {
  constexpr SampleId kMany = 10;
  auto options = SamplesOn(2, kMany, 300U << 20U);
  options.reserve = 2_GiB;
  LoopbackCluster cluster(options);
  wire::Holding held;
  std::vector<wire::ReadItem> items;
  for (SampleId id = 0; id < kMany; ++id) {
    held.gained.push_back(id);
    items.push_back({0, id, id});
  }
  cluster.cache(0).OnHolding(2, held);
  cluster.Ask(0, kPeersStream, items);
  EXPECT_EQ(cluster.cache(0).relay_bytes(), 300_MiB);
}

}  // namespace
}  // namespace optcache::node
