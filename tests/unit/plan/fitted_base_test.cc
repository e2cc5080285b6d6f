#include "plan/fitted_base.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

// Samples of one byte, read in the order of their ids, by the node given.
std::vector<FirstRead> ReadBy(const std::vector<NodeIndex>& readers) {
  std::vector<FirstRead> reads;
  for (const NodeIndex reader : readers)
    reads.push_back({.sample = static_cast<SampleId>(reads.size()), .reader = reader});
  return reads;
}

using Capacities = std::vector<ByteCount>;

TEST(FittedBase, LeavesWhatFits) {
  const Holders holders = {0, 1, kNoNode};
  EXPECT_TRUE(Fits(Sizes::Equal(3, 1), Capacities{1, 1}, holders));
  EXPECT_FALSE(Fits(Sizes::Equal(3, 1), Capacities{1, 0}, holders));
}

TEST(FittedBase, WhatANodeHasNoRoomForGoesToItsReaderElseToWhoHasMostRoom) {
  Holders holders = {2, 2, 2, 2, kNoNode};
  const FittedBase fitted =
      FitBase(Sizes::Equal(5, 1), Capacities{1, 3, 0}, ReadBy({0, 0, 1, 2, 0}), holders);
  EXPECT_EQ(fitted.relocations, (std::vector<Relocation>{{.sample = 0, .from = 2, .to = 0},
                                                         {.sample = 1, .from = 2, .to = 1},
                                                         {.sample = 2, .from = 2, .to = 1},
                                                         {.sample = 3, .from = 2, .to = 1}}));
  EXPECT_TRUE(fitted.evictions.empty());
  EXPECT_EQ(holders, (Holders{0, 1, 1, 1, kNoNode}));
}

TEST(FittedBase, ANodeThatShrinksKeepsWhatIsReadFirst) {
  Holders holders = {0, 0, 0, 0};
  const FittedBase fitted =
      FitBase(Sizes::Equal(4, 1), Capacities{2, 1}, ReadBy({0, 0, 0, 0}), holders);
  EXPECT_EQ(holders, (Holders{0, 0, 1, kNoNode}));
  EXPECT_EQ(fitted.evictions, std::vector<SampleId>{3});
}

TEST(FittedBase, WhatFindsNoRoomLeavesItToSmallerOnes) {
  Holders holders = {0, 0};
  const FittedBase fitted = FitBase(Sizes({10, 4}), Capacities{0, 9}, ReadBy({1, 1}), holders);
  EXPECT_EQ(holders, (Holders{kNoNode, 1}));
  EXPECT_EQ(fitted.evictions, std::vector<SampleId>{0});
}

// The same, looking at everything each time.
Holders SlowlyFitted(const Sizes& sizes, Capacities left, const std::vector<FirstRead>& reads,
                     const Holders& holders) {
  std::map<SampleId, NodeIndex> readers;
  std::vector<SampleId> soonest;  // what is not read comes last, the greatest first
  for (const FirstRead& read : reads) {
    readers[read.sample] = read.reader;
    soonest.push_back(read.sample);
  }
  for (std::size_t sample = holders.size(); sample-- > 0;) {
    if (readers.try_emplace(static_cast<SampleId>(sample), kNoNode).second)
      soonest.push_back(static_cast<SampleId>(sample));
  }
  std::vector<ByteCount> held(left.size());
  for (SampleId sample = 0; sample < holders.size(); ++sample)
    held[holders[sample]] += sizes[sample];
  Holders fitted = holders;
  for (const SampleId sample : std::vector(soonest.rbegin(), soonest.rend())) {
    if (held[holders[sample]] <= left[holders[sample]]) continue;
    held[holders[sample]] -= sizes[sample];
    fitted[sample] = kNoNode;
  }
  for (std::size_t node = 0; node < left.size(); ++node)
    left[node] -= held[node];
  for (const SampleId sample : soonest) {
    if (fitted[sample] != kNoNode) continue;
    const NodeIndex reader = readers.at(sample);
    auto to = static_cast<NodeIndex>(std::ranges::max_element(left) - left.begin());
    if (reader != kNoNode && left[reader] >= sizes[sample]) to = reader;
    if (left[to] < sizes[sample]) continue;
    fitted[sample] = to;
    left[to] -= sizes[sample];
  }
  return fitted;
}

// Whatever is held and offered: no node has too much, nothing that fits somewhere is given up, and
// what is told is what happened.
TEST(FittedBase, HoldsAtRandom) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto nodes = static_cast<NodeIndex>(1 + random.Below(5));
    const auto count = static_cast<std::uint32_t>(1 + random.Below(40));
    std::vector<std::uint32_t> bytes;
    Holders before;
    std::vector<FirstRead> reads;
    std::vector<std::size_t> place(count, count);  // in the order of the first reads
    for (const SampleId sample : Shuffled(count, random)) {
      if (random.Below(4) == 0) continue;
      place[sample] = reads.size();
      const bool has_node = random.Below(4) != 0;
      reads.push_back({.sample = sample,
                       .reader = has_node ? static_cast<NodeIndex>(random.Below(nodes)) : kNoNode});
    }
    for (std::uint32_t i = 0; i < count; ++i) {
      bytes.push_back(static_cast<std::uint32_t>(1 + random.Below(9)));
      before.push_back(static_cast<NodeIndex>(random.Below(nodes)));
    }
    const Sizes sizes(bytes);
    Capacities capacities;
    for (NodeIndex node = 0; node < nodes; ++node)
      capacities.push_back(random.Below(3) == 0 ? 0 : random.Below(150));
    Holders after = before;
    const FittedBase fitted = FitBase(sizes, capacities, reads, after);
    EXPECT_TRUE(Fits(sizes, capacities, after));
    EXPECT_EQ(after, SlowlyFitted(sizes, capacities, reads, before));
    Holders told = before;
    for (const auto& [sample, from, to] : fitted.relocations) {
      EXPECT_EQ(told[sample], from);
      EXPECT_NE(from, to);
      told[sample] = to;
    }
    Capacities left = capacities;
    for (SampleId sample = 0; sample < count; ++sample) {
      if (after[sample] != kNoNode) left[after[sample]] -= sizes[sample];
    }
    for (const SampleId sample : fitted.evictions) {
      told[sample] = kNoNode;
      for (const ByteCount room : left)
        EXPECT_LT(room, sizes[sample]);
    }
    EXPECT_EQ(told, after);
    for (std::size_t i = 1; i < fitted.relocations.size(); ++i) {
      EXPECT_LE(place[fitted.relocations[i - 1].sample], place[fitted.relocations[i].sample]);
    }
  }
}

}  // namespace
}  // namespace optcache::plan
