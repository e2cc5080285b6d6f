#include "cache/tiering.h"

#include <algorithm>
#include <limits>

#include <gmock/gmock.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::cache {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr SpillLimits kAll{.bytes = 1'000'000, .room = 1'000'000, .count = 1000};

TEST(Tiering, WhatIsUsedLastGoesAndLiesInTheOrderOfUse) {
  const std::vector<SpillCandidate> samples = {{.id = 1, .size = 10, .next_use = 5},
                                               {.id = 2, .size = 10, .next_use = 40},
                                               {.id = 3, .size = 10, .next_use = 30},
                                               {.id = 4, .size = 10, .next_use = 1}};
  EXPECT_THAT(ChooseSpill(samples, {.bytes = 20, .room = 100, .count = 9}), ElementsAre(3, 2));
}

TEST(Tiering, WhatIsNotKnownGoesBeforeWhatIs) {
  const std::vector<SpillCandidate> samples = {{.id = 1, .size = 10, .next_use = 5},
                                               {.id = 2, .size = 10, .last_use = 9},
                                               {.id = 3, .size = 10, .last_use = 3},
                                               {.id = 4, .size = 10, .next_use = 900}};
  EXPECT_THAT(ChooseSpill(samples, {.bytes = 20, .room = 100, .count = 9}), ElementsAre(3, 2));
}

TEST(Tiering, NeverMoreThanThereIsRoomFor) {
  const std::vector<SpillCandidate> samples = {{.id = 1, .size = 10, .next_use = 3},
                                               {.id = 2, .size = 30, .next_use = 2},
                                               {.id = 3, .size = 5, .next_use = 1}};
  EXPECT_THAT(ChooseSpill(samples, {.bytes = 100, .room = 39, .count = 9}), ElementsAre(1));
  EXPECT_THAT(ChooseSpill(samples, {.bytes = 100, .room = 9, .count = 9}), IsEmpty());
  EXPECT_THAT(ChooseSpill(samples, {.bytes = 100, .room = 100, .count = 2}), ElementsAre(2, 1));
}

// Else it would stay in memory for ever.
TEST(Tiering, ASampleLargerThanASegmentGoesAlone) {
  EXPECT_THAT(ChooseSpill({{.id = 1, .size = 500, .next_use = 3}, {.id = 2, .size = 1}},
                          {.bytes = 100, .room = 1000, .count = 9}),
              ElementsAre(1, 2));
  EXPECT_THAT(ChooseSpill({{.id = 1, .size = 500}, {.id = 2, .size = 1, .next_use = 3}},
                          {.bytes = 100, .room = 1000, .count = 9}),
              ElementsAre(1));
}

TEST(Tiering, ChoosesAsSortingWould) {
  const std::uint64_t seed = TestSeed(5);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<SpillCandidate> samples;
    for (SampleId id = 0; id < 50; ++id) {
      samples.push_back({.id = id,
                         .size = 1 + random.Below(9),
                         .next_use = static_cast<double>(random.Below(1000)),
                         .last_use = id});
    }
    const ByteCount wanted = 1 + random.Below(200);
    const auto chosen = ChooseSpill(samples, {.bytes = wanted, .room = 1000, .count = 1000});
    ByteCount bytes = 0;
    double soonest = std::numeric_limits<double>::max();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      bytes += samples[chosen[i]].size;
      soonest = std::min(soonest, samples[chosen[i]].next_use);
      if (i == 0) continue;
      ASSERT_LE(samples[chosen[i - 1]].next_use, samples[chosen[i]].next_use);
    }
    for (const SpillCandidate& sample : samples) {
      if (std::ranges::find(chosen, sample.id) != chosen.end()) continue;
      ASSERT_LE(sample.next_use, soonest);
    }
    ASSERT_GE(bytes, std::min<ByteCount>(wanted, 50));
  }
  EXPECT_THAT(ChooseSpill({}, kAll), IsEmpty());
}

TEST(Tiering, MemoryKeepsRoomForWhatComes) {
  constexpr ByteCount kMemory = 1_GiB;
  EXPECT_EQ(SegmentBytes(kMemory), 32_MiB);
  EXPECT_EQ(SpillBytes(kMemory - 96_MiB, kMemory, 0), 0U);
  EXPECT_EQ(SpillBytes(kMemory - 96_MiB + 1, kMemory, 0), 32_MiB);
  EXPECT_EQ(SegmentBytes(16_MiB), 1_MiB);
  EXPECT_EQ(SegmentBytes(2_MiB), 256_KiB);
  EXPECT_EQ(SegmentBytes(1_KiB), 256U);
  EXPECT_EQ(SpillBatchBytes(1_GiB), 32_MiB);
  EXPECT_EQ(SpillBatchBytes(64_GiB), 2_GiB);
  EXPECT_EQ(SpillBytes(512, 1_KiB, 0), 0U);
  EXPECT_EQ(SpillBytes(513, 1_KiB, 0), 256U);
  EXPECT_EQ(SpillBytes(0, 0, 0), 0U);
}

TEST(Tiering, MoreRoomWhereALargeSampleIsAwaited) {
  constexpr ByteCount kMemory = 1_GiB;
  EXPECT_EQ(SpillBytes(kMemory - 200_MiB, kMemory, 10_MiB), 0U);
  EXPECT_EQ(SpillBytes(kMemory - 200_MiB, kMemory, 200_MiB), 0U);
  EXPECT_EQ(SpillBytes(kMemory - 200_MiB, kMemory, 201_MiB), 32_MiB);
  EXPECT_EQ(SpillBytes(0, kMemory, 2_GiB), 0U);
  EXPECT_EQ(SpillBytes(1, kMemory, 2_GiB), 32_MiB);
}

TEST(Tiering, ADiskIsCountedWithoutItsOverhead) {
  EXPECT_EQ(DiskPayload(1000), 900U);
  EXPECT_EQ(DiskPayload(0), 0U);
}

}  // namespace
}  // namespace optcache::cache
