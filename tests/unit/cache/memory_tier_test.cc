#include "cache/memory_tier.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::cache {
namespace {

Entry EntryOf(ByteCount size) {
  return {.bytes = std::make_shared<SampleBytes>(size)};
}

TEST(MemoryTier, AdmitsUpToCapacityPlusReserve) {
  MemoryTier tier(100, 10);
  EXPECT_TRUE(tier.Reserve(100));
  EXPECT_FALSE(tier.FitsCapacity(1));
  EXPECT_TRUE(tier.Reserve(10));
  EXPECT_FALSE(tier.Reserve(1));
  tier.Unreserve(10);
  EXPECT_EQ(tier.used(), 100U);
}

TEST(MemoryTier, RefusesSizesThatWouldOverflow) {
  MemoryTier tier(100, 10);
  ASSERT_TRUE(tier.Reserve(50));
  EXPECT_FALSE(tier.Reserve(~ByteCount{0}));
}

TEST(MemoryTier, WhatLiesOnDiskLeavesRoomInMemory) {
  MemoryTier tier(100, 10, 60);  // 40 in memory
  EXPECT_EQ(tier.memory(), 40U);
  ASSERT_TRUE(tier.Reserve(30));
  tier.Insert(1, EntryOf(30));
  EXPECT_FALSE(tier.Reserve(30));
  EXPECT_TRUE(tier.WaitsForDisk(30));
  EXPECT_FALSE(tier.WaitsForDisk(20));
  tier.MoveToDisk(1);
  EXPECT_EQ(tier.Find(1)->bytes, nullptr);
  EXPECT_EQ(tier.in_memory(), 0U);
  EXPECT_EQ(tier.on_disk(), 30U);
  EXPECT_EQ(tier.used(), 30U);
  EXPECT_TRUE(tier.Reserve(50));  // memory and the reserve
  EXPECT_FALSE(tier.Reserve(1));
  EXPECT_TRUE(tier.TakeErasedOnDisk().empty());
  tier.Erase(1);
  EXPECT_EQ(tier.TakeErasedOnDisk(), std::vector<SampleId>{1});
  EXPECT_EQ(tier.used(), 50U);
  EXPECT_EQ(tier.samples_on_disk(), 0U);
}

TEST(MemoryTier, TheCapacityHoldsForBothTogether) {
  MemoryTier tier(100, 0, 60);
  tier.InsertOnDisk(1, 60, {});
  tier.InsertOnDisk(2, 30, {});  // found there
  EXPECT_TRUE(tier.Reserve(10));
  EXPECT_FALSE(tier.Reserve(1));
  EXPECT_FALSE(tier.WaitsForDisk(1));  // the plan has to give something up
  tier.Unreserve(10);
  ASSERT_TRUE(tier.Reserve(5));
  tier.Insert(1, EntryOf(5));  // anew
  EXPECT_EQ(tier.TakeErasedOnDisk(), std::vector<SampleId>{1});
  EXPECT_EQ(tier.used(), 35U);
}

TEST(MemoryTier, ReplacingASampleReleasesTheOldOne) {
  MemoryTier tier(100, 0);
  ASSERT_TRUE(tier.Reserve(30));
  tier.Insert(1, EntryOf(30));
  ASSERT_TRUE(tier.Reserve(40));
  tier.Insert(1, EntryOf(40));
  EXPECT_EQ(tier.used(), 40U);
  tier.Erase(1);
  EXPECT_EQ(tier.used(), 0U);
  EXPECT_EQ(tier.peak(), 70U);  // both, for a moment
  EXPECT_EQ(tier.Find(1), nullptr);
}

TEST(MemoryTier, ARefOutlivesItsEntry) {
  MemoryTier tier(100, 0);
  const ByteCount before = SampleBytes::LiveBytes();
  ASSERT_TRUE(tier.Reserve(8));
  SampleRef pin = tier.Insert(1, EntryOf(8)).bytes;
  tier.Erase(1);
  EXPECT_EQ(SampleBytes::LiveBytes(), before + 8);
  pin.reset();
  EXPECT_EQ(SampleBytes::LiveBytes(), before);
}

TEST(MemoryTier, AShrunkBudgetAdmitsNothingUntilEnoughHasGone) {
  MemoryTier tier(100, 0);
  ASSERT_TRUE(tier.Reserve(80));
  tier.Insert(1, EntryOf(80));
  tier.SetBudget(50, 0);
  EXPECT_FALSE(tier.Reserve(1));
  tier.Erase(1);
  EXPECT_TRUE(tier.Reserve(50));
}

TEST(MemoryTier, UsedEqualsTheSumOfItsEntriesUnderRandomUse) {
  const std::uint64_t seed = TestSeed(20261121);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  MemoryTier tier(1000, 100);
  for (int step = 0; step < 20000; ++step) {
    const auto id = static_cast<SampleId>(random.Below(50));
    const ByteCount size = random.Below(120);
    if (random.Below(2) == 0) {
      tier.Erase(id);
    } else if (tier.Reserve(size)) {
      tier.Insert(id, EntryOf(size));
    }
    ByteCount sum = 0;
    for (const auto& [_, entry] : tier.in_memory_entries())
      sum += entry.bytes->size();
    ASSERT_EQ(sum, tier.used());
    ASSERT_LE(tier.used(), 1100U);
  }
}

}  // namespace
}  // namespace optcache::cache
