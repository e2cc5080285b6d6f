#include "cache-node/retention/pass_counts.h"

#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cache-node/planning/plan_index.h"
#include "cache-node/planning/planned_shares.h"

namespace optcache::node {
namespace {

using coordination::PassReport;

std::vector<PassReport> All(const PassCounts& counts) {
  std::vector<PassReport> all;
  for (const auto& [_, passes] : counts.passes())
    all.insert(all.end(), passes.begin(), passes.end());
  return all;
}

TEST(PassCounts, ReadsCountInThePassOfTheirKeyHoweverTheyCome) {
  PassCounts counts;
  counts.OnHit({5, 1, 0});
  counts.OnMiss({5, 0, 9}, 100);
  counts.OnPeerHit({5, 1, 4});
  counts.OnHit({4, 7, 2});
  counts.OnHit({0, 1, 2});  // of no stream
  counts.OnMoved({5, 0, 9}, 30);
  counts.OnMoved({5, 0, 3}, 12);
  counts.OnMiss({5, 1, 1}, 7);
  EXPECT_EQ(
      All(counts),
      (std::vector<PassReport>{
          {.stream = 4, .pass = 7, .hits = 1},
          {.stream = 5, .pass = 0, .misses = 1, .miss_bytes = 100, .moved_bytes = 42},
          {.stream = 5, .pass = 1, .hits = 1, .peer_hits = 1, .misses = 1, .miss_bytes = 7}}));
}

TEST(PassCounts, KeepsTheLatestPassesOfAStream) {
  PassCounts counts;
  for (const PassNumber pass : {6U, 4U, 5U, 3U, 8U, 4U, 6U})
    counts.OnHit({5, pass, 0});
  EXPECT_EQ(All(counts), (std::vector<PassReport>{{.stream = 5, .pass = 5, .hits = 1},
                                                  {.stream = 5, .pass = 6, .hits = 2},
                                                  {.stream = 5, .pass = 8, .hits = 1}}));
  counts.ForgetStream(5);
  counts.OnPassBegun(5, 0);
  EXPECT_EQ(All(counts), (std::vector<PassReport>{{.stream = 5, .pass = 0}}));
}

TEST(PassCounts, AreBounded) {
  PassCounts counts;
  for (StreamId stream = 1; stream <= coordination::kMaxStreams + 5; ++stream)
    counts.OnHit({stream, 0, 0});
  EXPECT_EQ(counts.passes().size(), coordination::kMaxStreams);
}

// --- What plans predict of the same passes -----------------------------------------------------

constexpr std::size_t kNodes = 3;
constexpr Position kLength = 100;

struct Planned {
  std::shared_ptr<const plan::PassPlan> plan;
  std::vector<plan::Decision> decisions;  // from its begin on
};

// Decides [begin, kLength) by chance, with ranks in turn on the nodes and one on none.
Planned ByChance(PassNumber pass, Position begin, const plan::Order& order,
                 const plan::Sizes& sizes, Random& random) {
  const std::vector<NodeIndex> nodes = {0, 1, 2, kNoNode};
  plan::PassPlanBuilder builder(
      {.key = {.stream = 9, .pass = pass}, .begin = begin, .end = kLength, .pass_length = kLength},
      nodes, kNodes);
  Planned planned;
  const auto any = [&random] {
    const auto node = static_cast<NodeIndex>(random.Below(kNodes + 1));
    return node == kNodes ? kNoNode : node;
  };
  for (Position p = begin; p < kLength; ++p) {
    const plan::Decision decision{.holder = any(), .keep_at = any()};
    planned.decisions.push_back(decision);
    builder.Add(nodes[p % nodes.size()], decision.holder, decision.keep_at, sizes[(*order)[p]]);
  }
  planned.plan = builder.Finish();
  return planned;
}

// Read by read, from what the test drew.
plan::NodeShare ShareByHand(const Planned& planned, NodeIndex node, Position from, Position until,
                            const plan::Order& order, const plan::Sizes& sizes) {
  plan::NodeShare share;
  for (Position p = from; p < until; ++p) {
    const plan::Decision& decision = planned.decisions[p - planned.plan->begin()];
    const NodeIndex reader = p % 4 == 3 ? kNoNode : static_cast<NodeIndex>(p % 4);
    const ByteCount bytes = sizes[(*order)[p]];
    const NodeIndex begins = decision.holder == kNoNode ? reader : decision.holder;
    const bool moves = decision.keep_at != kNoNode && decision.keep_at != decision.holder &&
                       decision.keep_at != reader;
    if (moves && begins == node) share.moved_bytes += bytes;
    if (reader != node) continue;
    ++share.reads;
    share.read_bytes += bytes;
    if (decision.holder != kNoNode) continue;
    ++share.store_reads;
    share.store_bytes += bytes;
  }
  return share;
}

TEST(PlannedShares, AVersionThatBeginsInAPassLeavesWhatWasPredictedOfTheReadsBefore) {
  Random random(11);
  std::vector<std::uint32_t> bytes(kLength);
  for (auto& size : bytes)
    size = static_cast<std::uint32_t>(1 + random.Below(1000));
  const plan::Sizes sizes(bytes);
  std::vector<SampleId> ids(kLength);
  std::iota(ids.begin(), ids.end(), SampleId{0});
  std::swap(ids[3], ids[77]);
  const auto order = std::make_shared<const std::vector<SampleId>>(ids);

  PlannedShares shares;
  const Planned first = ByChance(0, 0, order, sizes, random);
  const Planned second = ByChance(0, 30, order, sizes, random);
  const Planned third = ByChance(0, 70, order, sizes, random);
  const Planned instead = ByChance(0, 50, order, sizes, random);
  const auto expect = [&](const plan::NodeShare& told, std::vector<plan::NodeShare> parts) {
    plan::NodeShare sum;
    for (const auto& part : parts)
      sum += part;
    EXPECT_EQ(told, sum);
  };
  const auto by_hand = [&](const Planned& planned, NodeIndex node, Position from, Position until) {
    return ShareByHand(planned, node, from, until, order, sizes);
  };
  expect(shares.Add(first.plan, 1, order, sizes), {by_hand(first, 1, 0, kLength)});
  expect(shares.Add(second.plan, 1, order, sizes),
         {by_hand(first, 1, 0, 30), by_hand(second, 1, 30, kLength)});
  // The node is another one of the next version's members.
  expect(shares.Add(third.plan, 2, order, sizes),
         {by_hand(first, 1, 0, 30), by_hand(second, 1, 30, 70), by_hand(third, 2, 70, kLength)});
  expect(shares.Add(instead.plan, 2, order, sizes),
         {by_hand(first, 1, 0, 30), by_hand(second, 1, 30, 50), by_hand(instead, 2, 50, kLength)});
  const Planned later = ByChance(1, 0, order, sizes, random);
  expect(shares.Add(later.plan, 0, order, sizes), {by_hand(later, 0, 0, kLength)});
}

TEST(PlannedShares, OfAnotherLifeOfTheStreamNothingCounts) {
  Random random(12);
  const plan::Sizes sizes = plan::Sizes::Equal(kLength, 10);
  std::vector<SampleId> ids(kLength);
  std::iota(ids.begin(), ids.end(), SampleId{0});
  const auto order = std::make_shared<const std::vector<SampleId>>(ids);
  PlannedShares shares;
  shares.Add(ByChance(6, 0, order, sizes, random).plan, 0, order, sizes);
  shares.Begin({.streams = {{.id = 9, .cut = {.pass = 0, .position = 0}}}});
  const Planned other = ByChance(6, 50, order, sizes, random);
  EXPECT_EQ(shares.Add(other.plan, 0, order, sizes),
            ShareByHand(other, 0, 50, kLength, order, sizes));
}

}  // namespace
}  // namespace optcache::node
