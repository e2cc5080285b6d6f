#include "sidecar/fetch/joined_read.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

constexpr JoinLimits kLimits = {.gap_max = 10, .bytes_max = 100, .samples_max = 3};

StorePlace Place(ByteCount begin, ByteCount end, std::uint32_t object = 0) {
  return {.object = object, .begin = begin, .end = end};
}

TEST(JoinedRead, GrowsAtBothEnds) {
  JoinedRead read(Place(50, 60), kLimits);
  EXPECT_TRUE(read.TakeAfter(Place(70, 80)));
  EXPECT_TRUE(read.TakeBefore(Place(30, 40)));
  EXPECT_EQ(read.whole(), Place(30, 80));
  EXPECT_EQ(read.samples(), 3);
  EXPECT_FALSE(read.TakeAfter(Place(80, 81))) << "one too many";
}

TEST(JoinedRead, LeavesOutWhatLiesElsewhere) {
  JoinedRead read(Place(50, 60), kLimits);
  EXPECT_FALSE(read.TakeAfter(Place(71, 72))) << "too wide a gap";
  EXPECT_FALSE(read.TakeBefore(Place(38, 39))) << "too wide a gap";
  EXPECT_FALSE(read.TakeAfter(Place(60, 70, 1))) << "another object";
  EXPECT_FALSE(read.TakeBefore(Place(40, 50, 1))) << "another object";
  EXPECT_FALSE(read.TakeAfter(Place(55, 70))) << "overlaps";
  EXPECT_FALSE(read.TakeBefore(Place(40, 51))) << "overlaps";
  EXPECT_FALSE(read.TakeAfter(Place(60, 151))) << "too much";
  EXPECT_TRUE(read.TakeAfter(Place(60, 150)));
}

TEST(JoinedRead, ALargeSampleIsReadAlone) {
  JoinedRead read(Place(0, 1000), kLimits);
  EXPECT_FALSE(read.TakeAfter(Place(1000, 1001)));
}

}  // namespace
}  // namespace optcache::sidecar
