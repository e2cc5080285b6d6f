#include "plan/node_share.h"

#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

// Where nothing is held elsewhere than at its reader, only the node's own reads are looked at.
TEST(NodeShare, SharesOfAPlanWithoutPeerHitsMakeItUp) {
  constexpr Position kBegin = 7;
  constexpr Position kLength = 101;
  const std::vector<NodeIndex> node_of_rank = {2, 0, 1, 0, kNoNode};
  PassPlanBuilder builder({.key = {}, .begin = kBegin, .end = kLength, .pass_length = kLength},
                          node_of_rank, 3);
  std::vector<SampleId> order(kLength);
  std::iota(order.begin(), order.end(), SampleId{0});
  const Sizes sizes = Sizes::Equal(kLength, 10);
  std::vector<NodeShare> by_hand(3);
  for (Position p = kBegin; p < kLength; ++p) {
    const NodeIndex reader = node_of_rank[p % node_of_rank.size()];
    const NodeIndex holder = p % 3 == 0 ? reader : kNoNode;
    const auto keep_at = static_cast<NodeIndex>(p % 4 == 3 ? kNoNode : p % 4);
    builder.Add(reader, holder, keep_at, 10);
    if (reader == kNoNode) continue;
    by_hand[reader] += {.reads = 1,
                        .store_reads = holder == kNoNode ? 1U : 0U,
                        .read_bytes = 10,
                        .store_bytes = holder == kNoNode ? 10U : 0U,
                        .moved_bytes = keep_at != kNoNode && keep_at != reader ? 10U : 0U};
  }
  const auto plan = builder.Finish();
  EXPECT_EQ(plan->stats().peer_hits, 0U);
  for (NodeIndex node = 0; node < 3; ++node)
    EXPECT_EQ(ShareOf(node, *plan, order, sizes), by_hand[node]) << node;
}

// Every node's share together is the plan's own account, and each is that of its reads and moves.
TEST(NodeShare, SharesOfAllNodesMakeUpThePlan) {
  constexpr std::size_t kNodes = 300;  // columns of two bytes
  constexpr Position kBegin = 17;
  constexpr Position kLength = 5000;
  Random random(3);
  std::vector<std::uint32_t> bytes(kLength);
  for (auto& size : bytes)
    size = static_cast<std::uint32_t>(random.Below(100));
  const Sizes sizes(bytes);
  std::vector<SampleId> order(kLength);
  std::iota(order.begin(), order.end(), SampleId{0});
  std::vector<NodeIndex> node_of_rank(40);
  for (auto& node : node_of_rank)
    node = static_cast<NodeIndex>(random.Below(kNodes));
  PassPlanBuilder builder(
      {.key = {.stream = 1, .pass = 2}, .begin = kBegin, .end = kLength, .pass_length = kLength},
      node_of_rank, kNodes);
  const auto any = [&random] {
    return random.Below(3) == 0 ? kNoNode : static_cast<NodeIndex>(random.Below(kNodes));
  };
  for (Position p = kBegin; p < kLength; ++p)
    builder.Add(node_of_rank[p % node_of_rank.size()], any(), any(), sizes[order[p]]);
  const auto plan = builder.Finish();

  NodeShare sum;
  for (NodeIndex node = 0; node < kNodes; ++node) {
    const NodeShare share = ShareOf(node, *plan, order, sizes);
    NodeShare parts = ShareOf(node, *plan, order, sizes, 2500);
    std::uint64_t reads = 0;
    for (Position p = 2500; p < kLength; ++p)
      reads += plan->ReaderAt(p) == node ? 1U : 0U;
    EXPECT_EQ(parts.reads + reads, share.reads);
    sum += share;
  }
  const PlanStats& stats = plan->stats();
  EXPECT_EQ(sum.reads, stats.accesses);
  EXPECT_EQ(sum.store_reads, stats.store_reads);
  EXPECT_EQ(sum.read_bytes, stats.bytes);
  EXPECT_EQ(sum.store_bytes, stats.store_bytes);
  EXPECT_EQ(sum.moved_bytes, stats.moved_bytes);
  EXPECT_EQ(ShareOf(kNoNode, *plan, order, sizes), NodeShare());
}

TEST(NodeShare, WhatIsHeldElsewhereIsSentOnFromThere) {
  PassPlanBuilder builder({.key = {}, .begin = 0, .end = 3, .pass_length = 3}, {0}, 3);
  builder.Add(0, 1, 2, 10);        // held at 1, sent on by 1
  builder.Add(0, 1, 0, 20);        // held at 1, kept by its reader
  builder.Add(0, kNoNode, 2, 30);  // read from the store, sent on by its reader
  const auto plan = builder.Finish();
  const std::vector<SampleId> order = {0, 1, 2};
  const Sizes sizes(std::vector<std::uint32_t>{10, 20, 30});
  EXPECT_EQ(
      ShareOf(0, *plan, order, sizes),
      (NodeShare{
          .reads = 3, .store_reads = 1, .read_bytes = 60, .store_bytes = 30, .moved_bytes = 30}));
  EXPECT_EQ(ShareOf(1, *plan, order, sizes), (NodeShare{.moved_bytes = 10}));
  EXPECT_EQ(ShareOf(2, *plan, order, sizes), NodeShare());
}

// With peer hits, where all reads are looked at, and without.
TEST(NodeShare, EndsSoonWhereItIsStopped) {
  constexpr std::size_t kLength = 4 * StopCheck::kSteps;
  std::vector<SampleId> order(kLength);
  std::iota(order.begin(), order.end(), SampleId{0});
  for (const NodeIndex holder : {NodeIndex{0}, NodeIndex{1}}) {
    PassPlanBuilder builder({.key = {}, .begin = 0, .end = kLength, .pass_length = kLength}, {0},
                            2);
    for (std::size_t i = 0; i < kLength; ++i)
      builder.Add(0, holder, 0, 1);
    std::size_t looks = 0;
    const NodeShare share = ShareOf(0, *builder.Finish(), order, Sizes::Equal(kLength, 1), kLength,
                                    StopCheck([&looks] { return ++looks > 2; }));
    EXPECT_EQ(share.reads, 2 * StopCheck::kSteps) << holder;
  }
}

}  // namespace
}  // namespace optcache::plan
