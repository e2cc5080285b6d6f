#include "simulation/stall_clock.h"

#include <gtest/gtest.h>

namespace optcache::simulation {
namespace {

TEST(StallClock, HitsTakeTheTimeOfTheirComputation) {
  StallClock clock({});
  clock.Hit();
  clock.Hit();
  EXPECT_DOUBLE_EQ(clock.now(), 2);
}

TEST(StallClock, AFastStoreIsNotNoticed) {
  StallClock clock({.bandwidth = 100, .staging_slots = 4});
  for (int i = 0; i < 10; ++i)
    clock.Miss(100);
  EXPECT_DOUBLE_EQ(clock.now(), 10);
}

TEST(StallClock, ASlowStoreSetsThePace) {
  StallClock clock({.bandwidth = 50, .staging_slots = 4});
  for (int i = 0; i < 10; ++i)
    clock.Miss(100);
  EXPECT_DOUBLE_EQ(clock.now(), 20);
}

// Two slots: the store fetches two misses while there are hits, not more.
TEST(StallClock, StagingSlotsLimitWhatIsFetchedAhead) {
  StallClock clock({.bandwidth = 10, .staging_slots = 2});
  for (int i = 0; i < 100; ++i)
    clock.Hit();
  clock.Miss(100);
  clock.Miss(100);
  EXPECT_DOUBLE_EQ(clock.now(), 102);
  clock.Miss(100);  // asked for when the first was consumed, at 101
  EXPECT_DOUBLE_EQ(clock.now(), 111);
}

TEST(StallClock, LatencyIsHiddenByEnoughSlots) {
  StallClock few({.bandwidth = 100, .latency = 10, .staging_slots = 1});
  StallClock many({.bandwidth = 100, .latency = 10, .staging_slots = 12});
  for (int i = 0; i < 100; ++i) {
    few.Miss(100);
    many.Miss(100);
  }
  EXPECT_DOUBLE_EQ(few.now(), 1'100);
  EXPECT_NEAR(many.now(), 110, 1.5);
}

}  // namespace
}  // namespace optcache::simulation
