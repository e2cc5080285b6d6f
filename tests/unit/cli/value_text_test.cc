#include "cli/terminal/value_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using ::testing::ElementsAre;

TEST(FormatValue, WritesUnitsAsPeopleReadThem) {
  EXPECT_EQ(FormatValue(0.5, "percentunit"), "50 %");
  EXPECT_EQ(FormatValue(0.0625, "percentunit"), "6.25 %");
  EXPECT_EQ(FormatValue(0, "bytes"), "0 B");
  EXPECT_EQ(FormatValue(1536, "bytes"), "1.5 KiB");
  EXPECT_EQ(FormatValue(3.0 * (1 << 30), "bytes"), "3 GiB");
  EXPECT_EQ(FormatValue(-2e6, "Bps"), "-2 MB/s");
  EXPECT_EQ(FormatValue(12'345, "ops"), "12.3k /s");
  EXPECT_EQ(FormatValue(0.0004, "s"), "400 µs");
  EXPECT_EQ(FormatValue(90, "s"), "1.5 min");
  EXPECT_EQ(FormatValue(2 * 86'400, "s"), "2 d");
  EXPECT_EQ(FormatValue(1'000'000, "short"), "1M");
  EXPECT_EQ(FormatValue(0.001, "short"), "0.001");
  EXPECT_EQ(FormatValue(1000, "none"), "1000");
}

TEST(PercentText, HasOneDigitAfterThePoint) {
  EXPECT_EQ(PercentText(0.3024), "30.2 %");
  EXPECT_EQ(PercentText(1), "100.0 %");
  EXPECT_EQ(PercentText("0.562"), "56.2 %");
}

TEST(PercentText, LeavesWhatIsNoNumber) {
  EXPECT_EQ(PercentText(""), "-");
  EXPECT_EQ(PercentText("0.5x"), "0.5x");
}

TEST(AxisTicks, AreRoundAndReachOverTheValues) {
  EXPECT_THAT(AxisTicks(0, 1, 4, "percentunit"), ElementsAre(0, .25, .5, .75, 1));
  EXPECT_THAT(AxisTicks(0, 7, 4, "short"), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(AxisTicks(-1, 3, 2, "short"), ElementsAre(-2, 0, 2, 4));
  EXPECT_THAT(AxisTicks(0, 3000, 3, "bytes"), ElementsAre(0, 1024, 2048, 3072));
}

TEST(TimeTicks, StandAtRoundMoments) {
  const std::vector<TimeTick> ticks = TimeTicks(1'767'607'210, 1'767'608'400, 4);
  ASSERT_EQ(ticks.size(), 4U);
  EXPECT_EQ(ticks[0].at, 1'767'607'500);
  EXPECT_EQ(ticks[0].text, "10:05");
  EXPECT_EQ(ticks[3].text, "10:20");
  EXPECT_EQ(TimeTicks(1'767'607'200, 1'767'607'230, 3)[1].text, "10:00:10");
  EXPECT_EQ(TimeTicks(1'767'607'200, 1'767'607'200 + 40.0 * 86'400, 5)[0].text, "01-15");
  EXPECT_LE(TimeTicks(0, 1e9, 5).size(), 6U);
}

TEST(FormatMoment, IsInUtc) {
  EXPECT_EQ(FormatMoment(1'767'607'200.9), "2026-01-05 10:00:00 UTC");
}

}  // namespace
}  // namespace optcache::cli
