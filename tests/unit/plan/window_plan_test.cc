#include "plan/window_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <queue>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

Passes ShuffledPasses(std::uint32_t samples, std::size_t passes, Random& random) {
  Passes orders;
  for (std::size_t i = 0; i < passes; ++i)
    orders.push_back(Shuffled(samples, random));
  return orders;
}

Inputs Streams(std::size_t streams, std::uint32_t samples, std::vector<ByteCount> capacities) {
  Inputs inputs;
  inputs.sizes = Sizes::Equal(samples, 1);
  for (std::size_t s = 0; s < streams; ++s) {
    inputs.streams.push_back(
        {.id = s, .node_of_rank = OneRankANode(static_cast<NodeIndex>(capacities.size()))});
  }
  inputs.capacities = std::move(capacities);
  return inputs;
}

double HitRatio(const CheckedRun& run) {
  return 1 -
         static_cast<double>(run.replayed.store_reads) / static_cast<double>(run.replayed.accesses);
}

// The whole future at once, one node, MIN by a priority queue.
std::uint64_t StoreReadsOfMin(const std::vector<SampleId>& trace, std::uint32_t samples,
                              std::size_t capacity) {
  constexpr std::size_t kNeverAgain = ~std::size_t{0};
  std::vector<std::size_t> next(trace.size());
  std::vector<std::size_t> upcoming(samples, kNeverAgain);
  for (std::size_t t = trace.size(); t-- > 0;) {
    next[t] = std::exchange(upcoming[trace[t]], t);
  }
  std::priority_queue<std::size_t> farthest;
  std::vector<bool> kept(trace.size());
  std::size_t count = 0;
  std::uint64_t reads = 0;
  for (std::size_t t = 0; t < trace.size(); ++t) {
    if (kept[t]) {
      kept[t] = false;
      --count;
    } else {
      ++reads;
    }
    if (next[t] == kNeverAgain) continue;
    kept[next[t]] = true;
    farthest.push(next[t]);
    for (++count; count > capacity; --count) {
      while (!kept[farthest.top()])
        farthest.pop();
      kept[farthest.top()] = false;
      farthest.pop();
    }
  }
  return reads;
}

// Streams that read equally many, in turns.
std::vector<SampleId> Merged(const std::vector<Passes>& streams) {
  std::vector<std::vector<SampleId>> lists;
  for (const Passes& passes : streams) {
    std::vector<SampleId>& list = lists.emplace_back();
    for (const std::vector<SampleId>& pass : passes)
      list.insert(list.end(), pass.begin(), pass.end());
  }
  std::vector<SampleId> trace;
  for (std::size_t p = 0; p < lists[0].size(); ++p) {
    for (const std::vector<SampleId>& list : lists)
      trace.push_back(list.at(p));
  }
  return trace;
}

TEST(WindowPlan, OfShufflingStreamsReadsAsLittleAsMinThatSeesTheWholeFuture) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const std::size_t streams = 2 + random.Below(4);
    std::vector<Passes> passes;
    for (std::size_t s = 0; s < streams; ++s)
      passes.push_back(ShuffledPasses(500, 4, random));
    const std::size_t capacity = random.Below(500);
    const CheckedRun run = RunChecked(Streams(streams, 500, {capacity}), passes);
    EXPECT_EQ(run.replayed.store_reads, StoreReadsOfMin(Merged(passes), 500, capacity));
  }
}

TEST(WindowPlan, NeverChangesItsMindWhenSizesAreEqual) {
  Random random(1);
  const std::vector<Passes> passes = {ShuffledPasses(1000, 5, random),
                                      ShuffledPasses(1000, 5, random),
                                      ShuffledPasses(1000, 5, random)};
  const CheckedRun run = RunChecked(Streams(3, 1000, {100, 100, 100}), passes);
  EXPECT_EQ(run.evictions, 0U);
}

TEST(WindowPlan, OfPassesCutShortKeepsForPassesFartherAhead) {
  struct Line {
    Position stops_at;
    double hit_ratio;  // at least, in the long run; pin reaches .300
  };
  for (const Line& line : {Line{5000, 0.551}, Line{2500, 0.594}}) {
    Inputs inputs = Streams(1, 10'000, {3000});
    inputs.streams[0].stops_at = line.stops_at;
    const auto store_reads = [&](std::size_t passes) {
      Random random(2);
      const Passes orders = ShuffledPasses(10'000, passes, random);
      const CheckedRun run = RunChecked(inputs, {orders});
      EXPECT_EQ(run.replayed.accesses, passes * line.stops_at);
      std::vector<SampleId> trace;
      for (const std::vector<SampleId>& order : orders)
        trace.insert(trace.end(), order.begin(),
                     order.begin() + static_cast<std::ptrdiff_t>(line.stops_at));
      const auto least = static_cast<double>(StoreReadsOfMin(trace, 10'000, 3000));
      const auto reads = static_cast<double>(run.replayed.store_reads);
      EXPECT_GE(reads, least);
      EXPECT_LE(reads, least * 1.01) << line.stops_at;
      return reads;
    };
    // What the first passes and the end do is in the longer and in the shorter run alike.
    const double steady =
        (store_reads(60) - store_reads(20)) / (40.0 * static_cast<double>(line.stops_at));
    EXPECT_GE(1 - steady, line.hit_ratio - 0.004);
  }
}

// The capacity is large: with one whole pass ahead, most next reads would not be known.
TEST(WindowPlan, OfPassesCutShortLooksAsFarAsALargeCacheIsWorth) {
  Random random(8);
  Inputs inputs = Streams(1, 2000, {1400});
  inputs.streams[0].stops_at = 500;
  Passes passes = ShuffledPasses(2000, 40, random);
  const CheckedRun run = RunChecked(inputs, {passes});
  for (std::vector<SampleId>& pass : passes)
    pass.resize(500);
  const std::uint64_t min = StoreReadsOfMin(Merged({passes}), 2000, 1400);
  EXPECT_LE(static_cast<double>(run.replayed.store_reads), 1.01 * static_cast<double>(min));
}

// Two jobs, of which one or both leave their passes early, in turns, for as long as four whole
// passes take.
struct CutStreams {
  std::vector<Passes> whole;
  std::vector<Passes> read;
  Inputs inputs;
};
CutStreams MakeCutStreams(std::array<Position, 2> stops_at, std::vector<ByteCount> capacities,
                          Random& random) {
  constexpr std::uint32_t kSamples = 500;
  CutStreams made{.inputs = Streams(2, kSamples, std::move(capacities))};
  for (std::size_t s = 0; s < 2; ++s) {
    made.inputs.streams[s].stops_at = stops_at[s];
    made.whole.push_back(ShuffledPasses(kSamples, 4 * kSamples / stops_at[s], random));
    Passes& read = made.read.emplace_back(made.whole.back());
    for (std::vector<SampleId>& pass : read)
      pass.resize(stops_at[s]);
  }
  return made;
}

TEST(WindowPlan, OfTwoStreamsWithOneCutShortReadsAsLittleAsMin) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const ByteCount capacity = 30 + 3 * random.Below(150);
    const bool first = random.Below(2) == 0;
    const Position part = std::array<Position, 3>{50, 125, 250}[random.Below(3)];
    const std::array<Position, 2> one = {first ? part : 500, first ? 500 : part};
    const std::array<Position, 2> both = {part, 100};
    for (const auto& stops_at : {one, both}) {
      CutStreams cut = MakeCutStreams(stops_at, {capacity}, random);
      const CheckedRun run = RunChecked(cut.inputs, cut.whole);
      ASSERT_EQ(run.replayed.accesses, 2U * 4 * 500);
      const std::uint64_t min = StoreReadsOfMin(Merged(cut.read), 500, capacity);
      // The whole passes of one show the next read of every sample.
      const double most = stops_at == one ? 1 : 1.02;
      EXPECT_GE(run.replayed.store_reads, min);
      EXPECT_LE(static_cast<double>(run.replayed.store_reads), most * static_cast<double>(min));
      cut.inputs = Streams(2, 500, {capacity / 3, capacity / 3, capacity / 3});
      for (std::size_t s = 0; s < 2; ++s)
        cut.inputs.streams[s].stops_at = stops_at[s];
      EXPECT_LE(static_cast<double>(RunChecked(cut.inputs, cut.whole).replayed.store_reads),
                1.1 * static_cast<double>(min))
          << "nodes this small differ by chance in what they read";
    }
  }
}

TEST(WindowPlan, OfDrawsWithReplacementBeatsKeepingTheMostFrequent) {
  Random random(3);
  Passes passes;
  for (int pass = 0; pass < 12; ++pass) {
    std::vector<SampleId>& order = passes.emplace_back(5000);
    for (SampleId& sample : order)
      sample = static_cast<SampleId>(random.Below(5000));
  }
  const CheckedRun run = RunChecked(Streams(1, 5000, {1500}), {passes});
  EXPECT_GT(HitRatio(run), 0.58);  // .666 in the long run; LRU and pin reach .300
}

TEST(WindowPlan, StreamsOfDifferentRatesAndLengthsReachTheirEnds) {
  Random random(4);
  Inputs inputs = Streams(2, 2000, {300, 300});
  inputs.streams[0].rate = 1000;
  inputs.streams[1].rate = 37;
  Result<Planner> planner = Planner::Make(
      inputs, ProvidePasses({ShuffledPasses(2000, 30, random), ShuffledPasses(2000, 2, random)}));
  ASSERT_TRUE(planner.has_value());
  std::uint64_t reads = 0;
  for (Result<PlanWindow> window = planner->Next(); !window->plans.empty();
       window = planner->Next()) {
    ASSERT_TRUE(window.has_value());
    for (const auto& plan : window->plans)
      reads += plan->stats().accesses;
  }
  EXPECT_EQ(reads, 32U * 2000);
}

TEST(WindowPlan, ANodeHoldsSamplesThatOthersReadUntilThen) {
  Random random(5);
  Inputs inputs = Streams(2, 1000, {150, 150});
  inputs.base.assign(1000, kNoNode);
  for (SampleId sample = 0; sample < 300; ++sample) {
    inputs.base[sample] = static_cast<NodeIndex>(sample % 2);
  }
  const CheckedRun run =
      RunChecked(inputs, {ShuffledPasses(1000, 3, random), ShuffledPasses(1000, 3, random)});
  EXPECT_GT(run.replayed.peer_hits, 100U);
}

TEST(WindowPlan, StreamsOfOneNodeUseTheMemoryOfAll) {
  Random random(21);
  const std::vector<Passes> passes = {ShuffledPasses(2000, 6, random),
                                      ShuffledPasses(2000, 6, random)};
  Inputs inputs = Streams(2, 2000, {200, 150, 250});
  for (StreamInput& stream : inputs.streams)
    stream.node_of_rank = {0};
  const CheckedRun run = RunChecked(inputs, passes);
  const auto of_one = RunChecked(Streams(2, 2000, {600}), passes).replayed.store_reads;
  EXPECT_NEAR(static_cast<double>(run.replayed.store_reads), static_cast<double>(of_one),
              0.01 * static_cast<double>(of_one));
  EXPECT_GT(run.replayed.peer_hits, 4000U);
}

// Ranks are spread unevenly, or room is: what finds no room at its reader's node is kept at others.
TEST(WindowPlan, OfRanksSpreadUnevenlyReadsHardlyMoreThanOneNodeOfAllMemory) {
  constexpr std::uint32_t kSamples = 4000;
  struct Line {
    std::vector<NodeIndex> node_of_rank;
    std::vector<ByteCount> parts;  // of the capacity, by node
  };
  for (const Line& line : {Line{{0, 1, 0}, {1, 1}}, Line{{0, 1, 2, 0, 1}, {1, 1, 1}},
                           Line{{0, 1}, {1, 2}}, Line{{0, 0, 1}, {2, 2, 1, 1}}}) {
    const auto all = std::accumulate(line.parts.begin(), line.parts.end(), ByteCount{0});
    for (const ByteCount percent : {30U, 60U, 90U, 99U, 100U}) {
      SCOPED_TRACE(testing::Message() << line.node_of_rank.size() << " ranks, " << percent << " %");
      Random random(22);
      const std::vector<Passes> passes = {ShuffledPasses(kSamples, 6, random),
                                          ShuffledPasses(kSamples, 6, random)};
      const ByteCount capacity = kSamples * percent / 100;
      std::vector<ByteCount> capacities;
      for (const ByteCount part : line.parts)
        capacities.push_back(capacity * part / all);
      Inputs inputs = Streams(2, kSamples, std::move(capacities));
      for (StreamInput& stream : inputs.streams)
        stream.node_of_rank = line.node_of_rank;
      const auto reads = static_cast<double>(RunChecked(inputs, passes).replayed.store_reads);
      const auto least = static_cast<double>(StoreReadsOfMin(Merged(passes), kSamples, capacity));
      EXPECT_GE(reads, least);
      EXPECT_LE(reads, 1.02 * least + 2 * std::sqrt(kSamples)) << "chance is part of it";
    }
  }
}

TEST(WindowPlan, WhatNodesWithoutCapacityReadIsLeftToTheOthersWhereAllHaveRanks) {
  Random random(23);
  const std::vector<Passes> passes = {ShuffledPasses(1000, 4, random),
                                      ShuffledPasses(1000, 4, random)};
  Inputs inputs = Streams(2, 1000, {300, 0, 300});
  const CheckedRun run = RunChecked(inputs, passes);
  EXPECT_EQ(run.replayed.peer_hits, 0U);
}

TEST(WindowPlan, EqualInputsGiveEqualDigests) {
  Random random(6);
  const std::vector<Passes> passes = {ShuffledPasses(1000, 3, random),
                                      ShuffledPasses(1000, 3, random)};
  const Inputs inputs = Streams(2, 1000, {150, 150});
  EXPECT_EQ(RunChecked(inputs, passes).digests, RunChecked(inputs, passes).digests);
}

TEST(WindowPlan, HowManyReadsNodesAreToldAtOnceChangesNothing) {
  Random random(7);
  std::vector<MergeStream> streams;
  for (std::uint32_t rate = 2; rate <= 4; ++rate) {
    MergeStream& stream =
        streams.emplace_back(MergeStream{.node_of_rank = {0, 1, kNoNode, 2}, .rate = rate});
    for (PassNumber pass = 0; pass < 3; ++pass) {
      const auto order = std::make_shared<const std::vector<SampleId>>(Shuffled(300, random));
      stream.segments.push_back({.order = order, .pass = pass, .begin = 0, .end = 300});
    }
  }
  const MergedOrder merged(std::move(streams), 2000);
  const Sizes sizes = Sizes::Equal(300, 1);
  const std::vector<ByteCount> capacities = {30, 40, 50};
  const std::vector<StreamId> ids = {1, 2, 3};
  Holders base(300, kNoNode);
  for (SampleId sample = 0; sample < 90; ++sample)
    base[sample] = static_cast<NodeIndex>(sample % 3);
  const auto plan = [&](std::size_t block, Holders& holders) {
    return PlanWindowByMin({.sizes = sizes,
                            .capacities = capacities,
                            .max_moved_bytes_per_sample = 1,
                            .merged = merged,
                            .window = 1000,
                            .stream_ids = ids,
                            .block = block},
                           holders);
  };
  Holders expected_holders = base;
  const WindowOutput expected = plan(2000, expected_holders);
  EXPECT_GT(expected.plans[0]->stats().peer_hits, 0U);
  for (const std::size_t block : {1U, 7U, 30U}) {
    Holders holders = base;
    const WindowOutput output = plan(block, holders);
    EXPECT_EQ(holders, expected_holders);
    ASSERT_EQ(output.plans.size(), expected.plans.size());
    for (std::size_t i = 0; i < output.plans.size(); ++i)
      EXPECT_EQ(output.plans[i]->digest(), expected.plans[i]->digest());
  }
}

TEST(WindowPlan, RandomCasesStayWithinCapacity) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto samples = static_cast<std::uint32_t>(1 + random.Below(60));
    const auto nodes = static_cast<NodeIndex>(1 + random.Below(4));
    Inputs inputs;
    std::vector<std::uint32_t> sizes;
    for (std::uint32_t s = 0; s < samples; ++s) {
      sizes.push_back(static_cast<std::uint32_t>(random.Below(20)));
    }
    inputs.sizes = Sizes(std::move(sizes));
    for (NodeIndex n = 0; n < nodes; ++n) {
      inputs.capacities.push_back(random.Below(inputs.sizes.total() + 1));
    }
    inputs.max_moved_bytes_per_sample = random.Below(2) == 0 ? kUnlimitedBytes : 12;
    for (std::uint32_t s = 0; s < samples; ++s) {
      inputs.base.push_back(random.Below(2) == 0 ? kNoNode
                                                 : static_cast<NodeIndex>(random.Below(nodes)));
    }
    const std::size_t streams = 1 + random.Below(3);
    std::vector<Passes> passes;
    for (std::size_t s = 0; s < streams; ++s) {
      StreamInput& stream = inputs.streams.emplace_back();
      stream.id = s;
      const std::size_t ranks = 1 + random.Below(5);
      for (std::size_t r = 0; r < ranks; ++r) {
        const bool nodeless = random.Below(8) == 0;
        stream.node_of_rank.push_back(nodeless ? kNoNode
                                               : static_cast<NodeIndex>(random.Below(nodes)));
      }
      Passes& orders = passes.emplace_back();
      for (int pass = 0; pass < 4; ++pass)
        orders.push_back(Padded(Shuffled(samples, random), ranks));
      if (streams == 1) stream.position = random.Below(samples);
    }
    RunChecked(inputs, passes);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace optcache::plan
