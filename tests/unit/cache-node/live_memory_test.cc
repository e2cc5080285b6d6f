#include "cache-node/serving/live_memory.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

using std::chrono::seconds;

TEST(LiveMemory, NothingArrivesAboveTheLimit) {
  LiveMemory memory(160_MiB);
  EXPECT_EQ(memory.limit(), 178_MiB);
  EXPECT_TRUE(memory.Admits(177_MiB, 1_MiB));
  EXPECT_FALSE(memory.Admits(177_MiB, 1_MiB + 1));
  EXPECT_FALSE(memory.Admits(200_MiB, 0));
  EXPECT_FALSE(memory.Admits(0, ~ByteCount{0}));
  EXPECT_EQ(memory.refused(), 3U);
}

// The factor of docs/memory.md, by which the chart sets the limit of a node's container.
TEST(LiveMemory, LeavesATenthForIndexAndAllocatorBelowTheContainersLimit) {
  for (const ByteCount memory : {128_MiB, 1_GiB, 64_GiB}) {
    const ByteCount taken = LiveMemory(memory).limit() + memory / 10;
    EXPECT_LE(taken, memory * 117 / 100 + 8_MiB) << memory;
  }
}

TEST(LiveMemory, WhoLeavesMuchUntakenHoldsItUpAfterAWhile) {
  LiveMemory memory(160_MiB);
  const MonotonicTime begin{std::chrono::hours(1)};
  EXPECT_FALSE(memory.IsHeldUp(170_MiB, 160_MiB, begin));
  EXPECT_FALSE(memory.IsHeldUp(170_MiB, 160_MiB, begin + seconds(4)));
  EXPECT_TRUE(memory.IsHeldUp(170_MiB, 160_MiB, begin + seconds(5)));
  EXPECT_FALSE(memory.IsHeldUp(170_MiB, 160_MiB, begin + seconds(6)))
      << "the first was just closed";
  EXPECT_TRUE(memory.IsHeldUp(170_MiB, 160_MiB, begin + seconds(10)));
}

TEST(LiveMemory, WhoTakesItsAnswersDoesNot) {
  LiveMemory memory(160_MiB);
  const MonotonicTime begin{std::chrono::hours(1)};
  for (int second = 0; second < 60; ++second) {
    const ByteCount live = second % 4 == 3 ? 168_MiB : 176_MiB;
    EXPECT_FALSE(memory.IsHeldUp(live, 160_MiB, begin + seconds(second)));
  }
}

}  // namespace
}  // namespace optcache::node
