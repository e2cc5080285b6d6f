#include "plan/slot_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

// One pass small enough to try everything.
struct Case {
  std::uint32_t samples = 0;
  std::vector<ByteCount> capacities;
  std::vector<NodeIndex> node_of_rank;
  std::vector<SampleId> current;
  std::vector<SampleId> next;
  Position begin = 0;
  Holders holders;
};

Case RandomCase(std::uint64_t seed, bool padded) {
  Random random(seed);
  Case c;
  c.samples = 3 + static_cast<std::uint32_t>(random.Below(6));
  const auto nodes = 1 + random.Below(3);
  for (std::uint64_t n = 0; n < nodes; ++n)
    c.capacities.push_back(random.Below(c.samples));
  const auto ranks = 1 + random.Below(padded ? 7 : 4);
  for (std::uint64_t r = 0; r < ranks; ++r) {
    c.node_of_rank.push_back(static_cast<NodeIndex>(random.Below(nodes)));
  }
  c.current = Shuffled(c.samples, random);
  c.next = Shuffled(c.samples, random);
  if (padded) {
    c.current = Padded(c.current, ranks);
    c.next = Padded(c.next, ranks);
  }
  c.begin = random.Below(c.current.size());
  c.holders.assign(c.samples, kNoNode);
  std::vector<ByteCount> room = c.capacities;
  for (NodeIndex& holder : c.holders) {
    const auto node = static_cast<NodeIndex>(random.Below(nodes));
    if (random.Below(2) == 0 || room[node] == 0) continue;
    holder = node;
    --room[node];
  }
  return c;
}

// A sample that could be kept: from one read until another, or past the end of the pass.
struct Choice {
  std::size_t begin = 0;
  std::optional<std::size_t> end;
  NodeIndex node = kNoNode;
  bool moves = false;
};

NodeIndex ReaderOf(const Case& c, std::size_t position) {
  return c.node_of_rank[position % c.node_of_rank.size()];
}

std::vector<Choice> ChoicesOf(const Case& c) {
  std::vector<Choice> choices;
  for (std::size_t p = c.begin; p < c.current.size(); ++p) {
    Choice choice{.begin = p, .end = {}, .node = kNoNode, .moves = false};
    const auto from = c.current.begin() + static_cast<std::ptrdiff_t>(p) + 1;
    const auto again = std::find(from, c.current.end(), c.current[p]);
    if (again != c.current.end()) {
      choice.end = static_cast<std::size_t>(again - c.current.begin());
      choice.node = ReaderOf(c, *choice.end);
    } else {
      const auto first = std::find(c.next.begin(), c.next.end(), c.current[p]);
      if (first == c.next.end()) continue;
      choice.node = ReaderOf(c, static_cast<std::size_t>(first - c.next.begin()));
    }
    choice.moves = choice.node != ReaderOf(c, p);
    choices.push_back(choice);
  }
  return choices;
}

// Whether the chosen ones of one node fit at every read.
bool Fits(const Case& c, NodeIndex node, const std::vector<Choice>& chosen) {
  std::int64_t used = 0;
  for (const NodeIndex holder : c.holders)
    used += holder == node ? 1 : 0;
  Holders holders = c.holders;
  for (std::size_t p = c.begin; p < c.current.size(); ++p) {
    if (std::exchange(holders[c.current[p]], kNoNode) == node) --used;
    for (const Choice& choice : chosen) {
      if (choice.end == p) --used;
    }
    for (const Choice& choice : chosen) {
      if (choice.begin == p) ++used;
    }
    if (used > static_cast<std::int64_t>(c.capacities[node])) return false;
  }
  return true;
}

struct Best {
  int kept = 0;  // at the nodes of their next readers
  int moves = 0;
  int all = 0;  // with those at other nodes
};

// The most that can be kept at its next readers, and the fewest moves for that: every subset, node
// by node.
Best TryEverything(const Case& c) {
  Best total;
  const std::vector<Choice> all = ChoicesOf(c);
  for (NodeIndex node = 0; node < c.capacities.size(); ++node) {
    std::vector<Choice> choices;
    for (const Choice& choice : all) {
      if (choice.node == node) choices.push_back(choice);
    }
    Best best;
    for (std::uint32_t subset = 0; subset < (1U << choices.size()); ++subset) {
      const int kept = std::popcount(subset);
      if (kept < best.kept) continue;
      std::vector<Choice> chosen;
      int moves = 0;
      for (std::size_t i = 0; i < choices.size(); ++i) {
        if (((subset >> i) & 1U) == 0) continue;
        chosen.push_back(choices[i]);
        moves += choices[i].moves ? 1 : 0;
      }
      if (kept == best.kept && moves >= best.moves) continue;
      if (Fits(c, node, chosen)) best = {.kept = kept, .moves = moves};
    }
    total.kept += best.kept;
    total.moves += best.moves;
  }
  return total;
}

Best PlanBySlots(const Case& c) {
  SlotPlanner planner({.sizes = Sizes::Equal(c.samples, 1),
                       .capacities = c.capacities,
                       .max_moved_bytes_per_sample = kUnlimitedBytes});
  planner.Load({.key = {},
                .begin = c.begin,
                .current = c.current,
                .next = c.next,
                .node_of_rank = c.node_of_rank},
               c.holders);
  Holders holders = c.holders;
  const SlotPlanner::Output output = planner.Plan(holders);
  Replay replay(Sizes::Equal(c.samples, 1), c.capacities, c.holders);
  replay.Evict(output.evictions);
  Best best;
  const std::vector<Choice> choices = ChoicesOf(c);
  for (Position p = c.begin; p < c.current.size(); ++p) {
    const Decision decision = output.plan->At(p);
    const auto choice = std::ranges::find(choices, p, &Choice::begin);
    best.all += decision.keep_at != kNoNode ? 1 : 0;
    if (choice != choices.end() && decision.keep_at == choice->node) {
      ++best.kept;
      best.moves += choice->moves ? 1 : 0;
    }
    replay.Read(c.current[p], ReaderOf(c, p), decision, 0);
  }
  EXPECT_EQ(replay.capacity_exceeded(), 0U);
  EXPECT_EQ(replay.misplaced(), 0U);
  EXPECT_EQ(replay.holders(), holders);
  return best;
}

TEST(SlotPlan, KeepsAsMuchWithAsFewMovesAsAnySetDoes) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case c = RandomCase(seed, /*padded=*/false);
    const Best best = TryEverything(c);
    const Best slots = PlanBySlots(c);
    ASSERT_EQ(slots.kept, best.kept);
    ASSERT_EQ(slots.moves, best.moves);
  }
}

TEST(SlotPlan, KeepsAsMuchAsAnySetDoesWhenSamplesRepeat) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case c = RandomCase(seed, /*padded=*/true);
    ASSERT_EQ(PlanBySlots(c).kept, TryEverything(c).kept);
  }
}

// However the room is spread: what can be kept is what fits into all nodes' room together.
int TryEverythingPooled(Case c) {
  ByteCount room = 0;
  for (const ByteCount capacity : c.capacities)
    room += capacity;
  c.capacities = {room};
  for (NodeIndex& holder : c.holders)
    holder = holder == kNoNode ? kNoNode : NodeIndex{0};
  c.node_of_rank.assign(c.node_of_rank.size(), 0);
  return TryEverything(c).kept;
}

TEST(SlotPlan, UsesTheRoomOfAllNodes) {
  int kept = 0;
  int most = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const Case c = RandomCase(seed, /*padded=*/false);
    const int pooled = TryEverythingPooled(c);
    const int slots = PlanBySlots(c).all;
    ASSERT_LE(slots, pooled) << "seed " << seed;
    kept += slots;
    most += pooled;
  }
  EXPECT_GE(kept, most * 99 / 100) << kept << " of " << most;
}

Inputs OneStream(std::uint32_t samples, std::vector<ByteCount> capacities) {
  Inputs inputs;
  inputs.sizes = Sizes::Equal(samples, 1);
  inputs.streams.push_back(
      {.id = 0, .node_of_rank = OneRankANode(static_cast<NodeIndex>(capacities.size()))});
  inputs.capacities = std::move(capacities);
  return inputs;
}

Passes SeededPasses(std::uint32_t samples, std::size_t passes, std::uint64_t seed) {
  Random random(seed);
  Passes orders;
  for (std::size_t i = 0; i < passes; ++i)
    orders.push_back(Shuffled(samples, random));
  return orders;
}

TEST(SlotPlan, MeetsTheLowerBoundOnOneNode) {
  const CheckedRun run = RunChecked(OneStream(1000, {300}), {SeededPasses(1000, 6, 1)});
  EXPECT_EQ(run.replayed.store_reads, 1000U + 5 * 700);
  EXPECT_EQ(run.replayed.moves, 0U);
}

TEST(SlotPlan, HitsEvenlyOverTheEpoch) {
  const CheckedRun run =
      RunChecked(OneStream(20'000, {1500, 1500, 1500, 1500}), {SeededPasses(20'000, 12, 2)});
  for (std::size_t tenth = 0; tenth < 10; ++tenth) {
    const double hits = static_cast<double>(run.replayed.hits_by_tenth[tenth]) / (2000.0 * 11);
    EXPECT_NEAR(hits, 0.3, 0.01) << "tenth " << tenth;
  }
}

TEST(SlotPlan, WithoutCapacityKeepsNothing) {
  const CheckedRun run = RunChecked(OneStream(100, {0, 0}), {SeededPasses(100, 3, 3)});
  EXPECT_EQ(run.replayed.store_reads, 300U);
}

TEST(SlotPlan, ReadsEachSampleOnceWhenEveryNodeHoldsTheDataset) {
  const CheckedRun run = RunChecked(OneStream(100, {100, 100}), {SeededPasses(100, 4, 4)});
  EXPECT_EQ(run.replayed.store_reads, 100U);
}

// 65 ranks read 64 samples twice each but for two: keeping a sample inside the pass pays as well.
TEST(SlotPlan, UsesRoomForTheRepeatsOfTinyDatasets) {
  Inputs inputs = OneStream(3, {3});
  inputs.streams[0].node_of_rank.assign(8, 0);
  Random random(5);
  Passes passes;
  for (int i = 0; i < 3; ++i)
    passes.push_back(Padded(Shuffled(3, random), 8));
  const CheckedRun run = RunChecked(inputs, {passes});
  EXPECT_EQ(run.replayed.store_reads, 3U);
  EXPECT_EQ(run.replayed.accesses, 24U);
}

TEST(SlotPlan, LeavesLargeSamplesWithTheirReader) {
  Inputs inputs = OneStream(1000, {200, 200});
  inputs.max_moved_bytes_per_sample = 0;
  const CheckedRun run = RunChecked(inputs, {SeededPasses(1000, 5, 6)});
  EXPECT_EQ(run.replayed.moves, 0U);
  EXPECT_GT(run.replayed.local_hits, 0U);
}

TEST(SlotPlan, ReadsSamplesThatLieElsewhereFromThere) {
  Inputs inputs = OneStream(1000, {300, 300});
  inputs.base.assign(1000, kNoNode);
  for (SampleId sample = 0; sample < 600; ++sample) {
    inputs.base[sample] = static_cast<NodeIndex>(sample % 2);
  }
  const CheckedRun run = RunChecked(inputs, {SeededPasses(1000, 3, 7)});
  EXPECT_GT(run.replayed.peer_hits, 250U);
  // The first pass finds all 600; the others miss what does not fit.
  EXPECT_NEAR(static_cast<double>(run.replayed.store_reads), 3 * 400, 5);
}

TEST(SlotPlan, OneReaderUsesTheMemoryOfAllNodes) {
  Inputs inputs = OneStream(1000, {200, 100, 150, 50});
  inputs.streams[0].node_of_rank = {0};
  const CheckedRun run = RunChecked(inputs, {SeededPasses(1000, 6, 9)});
  EXPECT_EQ(run.replayed.store_reads, 1000U + 5 * 500);
  EXPECT_EQ(run.replayed.moves, 300U);  // once, while it fills: then they stay where they are
}

TEST(SlotPlan, ANodeWithMoreThanItsRanksUseLendsItsRoom) {
  const CheckedRun run = RunChecked(OneStream(1000, {700, 100}), {SeededPasses(1000, 6, 10)});
  EXPECT_NEAR(static_cast<double>(run.replayed.store_reads), 1000 + 5 * 200, 5);
}

TEST(SlotPlan, SpareRoomIsUsedEvenlyWhereSizesVary) {
  Inputs inputs = OneStream(2000, {30'000, 30'000, 30'000});
  inputs.streams[0].node_of_rank = {0, 0};
  Random random(11);
  std::vector<std::uint32_t> sizes(2000);
  ByteCount total = 0;
  for (std::uint32_t& size : sizes) {
    size = 50 + static_cast<std::uint32_t>(random.Below(150));
    total += size;
  }
  inputs.sizes = Sizes(sizes);
  const CheckedRun run = RunChecked(inputs, {SeededPasses(2000, 8, 12)});
  const double bound = static_cast<double>(total + 7 * (total - 90'000));
  EXPECT_LE(static_cast<double>(run.replayed.store_bytes), 1.01 * bound);
  const double even = 0.7 * static_cast<double>(total - 90'000);  // a tenth of seven passes
  for (std::size_t tenth = 0; tenth < 10; ++tenth) {
    const auto missed = static_cast<double>(run.missed_bytes_by_tenth[tenth]);
    EXPECT_NEAR(missed, even, 0.06 * even) << "tenth " << tenth;
  }
}

// A capacity of 100 %, divided by nodes in whole bytes: nothing is given up for what is not there.
TEST(SlotPlan, AByteLessThanAllKeepsNearlyAll) {
  Random random(13);
  std::vector<std::uint32_t> sizes(2000);
  ByteCount total = 0;
  for (std::uint32_t& size : sizes) {
    size = 100 + static_cast<std::uint32_t>(random.Below(100) * random.Below(100));
    total += size;
  }
  const ByteCount third = (total - 1) / 3;
  Inputs inputs = OneStream(2000, {third, third, third});
  inputs.sizes = Sizes(sizes);
  const CheckedRun run = RunChecked(inputs, {SeededPasses(2000, 6, 14)});
  EXPECT_LE(run.replayed.store_bytes, total + 5 * total * 4 / 100);
}

TEST(SlotPlan, RanksWithoutANodeReadTheStore) {
  Inputs inputs = OneStream(1000, {500});
  inputs.streams[0].node_of_rank = {0, kNoNode};
  const CheckedRun run = RunChecked(inputs, {SeededPasses(1000, 4, 8)});
  EXPECT_EQ(run.replayed.local_hits, run.predicted.local_hits);
  EXPECT_GT(run.replayed.local_hits, 3 * 450U);
  EXPECT_LE(run.replayed.local_hits, 3 * 500U);
}

}  // namespace
}  // namespace optcache::plan
