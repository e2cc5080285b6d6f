#include "storage/hedge_policy.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"
#include "support/straggling_store.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;

HedgePolicy Measured(HedgeOptions options, Duration latency, ByteCount bytes = 1) {
  HedgePolicy policy(options);
  for (int i = 0; i < 1000; ++i)
    policy.OnLatency(bytes, latency);
  return policy;
}

TEST(HedgePolicy, NothingIsLateBeforeEnoughWasMeasured) {
  HedgePolicy policy({.measured_min = 3});
  EXPECT_EQ(policy.OnRead(1), std::nullopt);
  for (int i = 0; i < 3; ++i)
    policy.OnLatency(1, milliseconds(50));
  EXPECT_TRUE(policy.OnRead(1).has_value());
  EXPECT_EQ(policy.OnRead(1_MiB), std::nullopt) << "another size";
}

TEST(HedgePolicy, LateIsLongerThanMostAndThanTwiceTheMedian) {
  HedgePolicy even = Measured({}, milliseconds(50));
  EXPECT_GE(even.OnRead(1), milliseconds(100));
  EXPECT_LE(even.OnRead(1), milliseconds(110));
  HedgePolicy fast = Measured({}, std::chrono::microseconds(100));
  EXPECT_EQ(fast.OnRead(1), milliseconds(10));
  HedgePolicy tailed({});
  for (int i = 0; i < 1000; ++i)
    tailed.OnLatency(1, milliseconds(i % 20 == 0 ? 800 : 50));
  EXPECT_GE(tailed.OnRead(1), milliseconds(800));
}

TEST(HedgePolicy, HedgesAreAShareOfTheReads) {
  HedgePolicy policy({.extra_share = 0.02});
  for (int i = 0; i < 49; ++i)
    policy.OnRead(1);
  EXPECT_FALSE(policy.TryStart(1));
  policy.OnRead(1);
  EXPECT_TRUE(policy.TryStart(1));
  EXPECT_FALSE(policy.TryStart(1));
}

TEST(HedgePolicy, BoundsNumberAndMemory) {
  HedgePolicy policy({.extra_share = 1, .saved_max = 100, .running_max = 2, .bytes_max = 100});
  for (int i = 0; i < 50; ++i)
    policy.OnRead(1);
  EXPECT_TRUE(policy.TryStart(60));
  EXPECT_FALSE(policy.TryStart(41));
  EXPECT_TRUE(policy.TryStart(40));
  EXPECT_FALSE(policy.TryStart(0));
  policy.OnHedgeEnd(40);
  EXPECT_TRUE(policy.TryStart(40));
}

TEST(HedgePolicy, LargeReadsAndAShareOfZeroAreNotHedged) {
  EXPECT_EQ(Measured({.bytes_max = 10}, milliseconds(50), 11).OnRead(11), std::nullopt);
  EXPECT_EQ(Measured({.extra_share = 0}, milliseconds(50)).OnRead(1), std::nullopt);
}

// The promise: one request in a hundred takes two seconds more, and the 99th percentile falls to a
// fifth at least, for two percent more requests at most.
TEST(HedgePolicy, TakesTheTailOffAStoreWithStragglers) {
  const std::uint64_t seed = TestSeed(415);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  for (std::uint64_t round = 0; round < 5; ++round) {
    StragglingStore store = {.seed = seed + round};
    const StragglingReads hedged = ReadAll(store);
    store.hedges.extra_share = 0;
    const StragglingReads plain = ReadAll(store);
    EXPECT_EQ(plain.requests, store.reads);
    EXPECT_GE(plain.Quantile(0.99), 2000);
    EXPECT_LE(hedged.Quantile(0.99), plain.Quantile(0.99) / 5);
    EXPECT_LE(hedged.Quantile(0.995), 500);
    EXPECT_LE(hedged.extra(store.reads), 0.02);
  }
}

// Whatever the store does, the limits hold: a brown-out of everything, sizes that vary, many
// stragglers.
TEST(HedgePolicy, KeepsItsLimitsInABrownOut) {
  const std::uint64_t seed = TestSeed(416);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    const StragglingStore store = {.seed = random.Next(),
                                   .reads = 5000,
                                   .at_a_time = 1 + random.Below(200),
                                   .median_ms = 1 + 100 * random.Unit(),
                                   .spread = random.Unit(),
                                   .straggle_every = 1 + random.Below(100),
                                   .straggler_ms = 5000 * random.Unit(),
                                   .brown_out_at = 2000,
                                   .brown_out_factor = 1 + 20 * random.Unit(),
                                   .sizes = {1_KiB, 100_KiB, 3_MiB, 9_MiB},
                                   .hedges = {}};
    const StragglingReads reads = ReadAll(store);
    EXPECT_EQ(reads.latencies_ms.size(), store.reads);
    EXPECT_LE(reads.extra(store.reads), store.hedges.extra_share);
    EXPECT_LE(reads.running_max, store.hedges.running_max);
    EXPECT_LE(reads.bytes_max, store.hedges.bytes_max);
  }
}

}  // namespace
}  // namespace optcache::storage
