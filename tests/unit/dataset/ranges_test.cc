#include "dataset/ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::HasSubstr;

TEST(Ranges, CountsTheSamplesOfRuns) {
  EXPECT_EQ(RangeIndex{}.samples(), 0U);
  const RangeIndex index = {.objects = {"a"}, .runs = {{.length = 4}, {.length = 4, .count = 9}}};
  EXPECT_EQ(index.samples(), 10U);
}

TEST(Ranges, EndWithinTheirObject) {
  const RangeIndex index = {.objects = {"a.bin"}, .runs = {}};
  EXPECT_TRUE(CheckRun(index, {.line = 7, .offset = 700, .length = 100}, 800).ok());
  EXPECT_TRUE(CheckRun(index, {.line = 7, .offset = 0, .length = 100, .count = 8}, 800).ok());
  EXPECT_TRUE(CheckRun(index, {.line = 7, .offset = 800, .length = 0}, 800).ok());
  const Status beyond = CheckRun(index, {.line = 7, .offset = 701, .length = 100}, 800);
  EXPECT_EQ(beyond.code(), Code::kInvalidArgument);
  EXPECT_THAT(
      beyond.message(),
      HasSubstr("line 7: 100 bytes from byte 701 on end beyond a.bin, which has 800 bytes"));
  EXPECT_FALSE(CheckRun(index, {.offset = 801, .length = 0}, 800).ok());
  EXPECT_FALSE(CheckRun(index, {.offset = 1, .length = 100, .count = 8}, 800).ok());
  EXPECT_FALSE(CheckRun(index, {.offset = ~ByteCount{0}, .length = 2}, 800).ok());
  EXPECT_FALSE(CheckRun(index, {.length = ByteCount{1} << 62U, .count = 8}, 800).ok());
}

}  // namespace
}  // namespace optcache::dataset
