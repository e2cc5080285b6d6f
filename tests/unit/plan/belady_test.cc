#include "plan/belady.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

constexpr std::uint32_t kNever = 0xffffffffU;

std::vector<std::uint32_t> NextUses(const std::vector<std::uint32_t>& trace,
                                    std::uint32_t samples) {
  std::vector<std::uint32_t> next(trace.size());
  std::vector<std::uint32_t> upcoming(samples, kNever);
  for (std::size_t t = trace.size(); t-- > 0;) {
    next[t] = upcoming[trace[t]];
    upcoming[trace[t]] = static_cast<std::uint32_t>(t);
  }
  return next;
}

std::uint64_t HitsOfBelady(const std::vector<std::uint32_t>& next, ByteCount capacity) {
  Belady node(static_cast<std::uint32_t>(next.size()), capacity);
  const auto one = [](std::uint32_t) -> ByteCount { return 1; };
  std::uint64_t hits = 0;
  for (std::uint32_t t = 0; t < next.size(); ++t) {
    if (node.Take(t, 1)) ++hits;
    if (next[t] != kNever) node.Offer(next[t], 1, one);
    EXPECT_LE(node.used(), capacity);
  }
  return hits;
}

// The most hits that any choice of what to keep can have, by trying every choice.
std::uint64_t MostHits(const std::vector<std::uint32_t>& next, std::size_t t,
                       std::vector<std::uint32_t> kept, std::size_t capacity) {
  if (t == next.size()) return 0;
  const auto found = std::find(kept.begin(), kept.end(), t);
  const std::uint64_t hit = found != kept.end() ? 1 : 0;
  if (hit == 1) kept.erase(found);
  std::uint64_t most = MostHits(next, t + 1, kept, capacity);
  if (next[t] != kNever && capacity > 0) {
    if (kept.size() < capacity) {
      kept.push_back(next[t]);
      most = std::max(most, MostHits(next, t + 1, kept, capacity));
    } else {
      for (std::size_t victim = 0; victim < kept.size(); ++victim) {
        std::vector<std::uint32_t> other = kept;
        other[victim] = next[t];
        most = std::max(most, MostHits(next, t + 1, other, capacity));
      }
    }
  }
  return hit + most;
}

// MIN by the textbook: a priority queue of next uses with stale entries.
std::uint64_t HitsByQueue(const std::vector<std::uint32_t>& next, std::size_t capacity) {
  std::priority_queue<std::uint32_t> farthest;
  std::vector<bool> kept(next.size());
  std::size_t count = 0;
  std::uint64_t hits = 0;
  for (std::uint32_t t = 0; t < next.size(); ++t) {
    if (kept[t]) {
      kept[t] = false;
      --count;
      ++hits;
    }
    if (next[t] == kNever) continue;
    kept[next[t]] = true;
    farthest.push(next[t]);
    for (++count; count > capacity; --count) {
      while (!kept[farthest.top()])
        farthest.pop();
      kept[farthest.top()] = false;
      farthest.pop();
    }
  }
  return hits;
}

std::vector<std::uint32_t> RandomTrace(Random& random, std::size_t length, std::uint32_t samples) {
  std::vector<std::uint32_t> trace(length);
  for (std::uint32_t& sample : trace)
    sample = static_cast<std::uint32_t>(random.Below(samples));
  return trace;
}

TEST(Belady, GivesUpTheSampleUsedFarthestAhead) {
  Belady node(10, 1);
  const auto one = [](std::uint32_t) -> ByteCount { return 1; };
  node.Offer(7, 1, one);
  node.Offer(4, 1, one);
  EXPECT_TRUE(node.Keeps(4));
  EXPECT_FALSE(node.Keeps(7));
}

TEST(Belady, PassesByASampleUsedLaterThanAllItKeeps) {
  Belady node(10, 1);
  const auto one = [](std::uint32_t) -> ByteCount { return 1; };
  node.Offer(4, 1, one);
  node.Offer(7, 1, one);
  EXPECT_TRUE(node.Keeps(4));
  EXPECT_FALSE(node.Keeps(7));
}

TEST(Belady, IgnoresASampleLargerThanTheNode) {
  Belady node(10, 5);
  const auto sizes = [](std::uint32_t use) -> ByteCount { return use; };
  node.Offer(4, 4, sizes);
  node.Offer(3, 6, sizes);
  EXPECT_TRUE(node.Keeps(4));
  EXPECT_FALSE(node.Keeps(3));
}

TEST(Belady, GivesUpSeveralSmallSamplesForALargeOneUsedSooner) {
  Belady node(10, 5);
  const auto sizes = [](std::uint32_t use) -> ByteCount { return use == 1 ? 4 : 2; };
  node.Offer(5, 2, sizes);
  node.Offer(6, 2, sizes);
  node.Offer(1, 4, sizes);
  EXPECT_TRUE(node.Keeps(1));
  EXPECT_EQ(node.used(), 4U);
}

TEST(Belady, GivesNothingUpForWhatIsOfferedIfThereIsRoom) {
  Belady node(5, 3);
  node.OfferIfRoom(4, 2);
  EXPECT_FALSE(node.gave_up());
  node.OfferIfRoom(1, 2);
  EXPECT_TRUE(node.Keeps(4));
  EXPECT_FALSE(node.Keeps(1));
  EXPECT_EQ(node.used(), 2U);
  EXPECT_TRUE(node.gave_up());
}

TEST(Belady, SaysWhetherItGaveAnythingUp) {
  const auto each_one = [](std::uint32_t) { return ByteCount{1}; };
  Belady node(5, 2);
  node.Offer(2, 1, each_one);
  node.Offer(4, 1, each_one);
  EXPECT_FALSE(node.gave_up());
  node.Offer(3, 1, each_one);
  EXPECT_TRUE(node.gave_up());
  Belady small(5, 2);
  small.Offer(2, 3, each_one);
  EXPECT_TRUE(small.gave_up());
}

TEST(Belady, HitsAsOftenAsAnyChoiceCan) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto samples = static_cast<std::uint32_t>(2 + random.Below(5));
    const auto trace = RandomTrace(random, 4 + random.Below(8), samples);
    const std::size_t capacity = random.Below(4);
    const auto next = NextUses(trace, samples);
    ASSERT_EQ(HitsOfBelady(next, capacity), MostHits(next, 0, {}, capacity));
  }
}

TEST(Belady, HitsAsOftenAsAPriorityQueue) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto trace = RandomTrace(random, 100'000, 20'000);
    const auto next = NextUses(trace, 20'000);
    for (const std::size_t capacity : {0U, 1U, 500U, 6000U, 20'000U}) {
      EXPECT_EQ(HitsOfBelady(next, capacity), HitsByQueue(next, capacity));
    }
  }
}

}  // namespace
}  // namespace optcache::plan
