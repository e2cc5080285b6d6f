#include "base/time_text.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

constexpr double kMoment = 1'800'000'000.25;  // 2027-01-15T08:00:00.25Z

TEST(TimeText, IsRfc3339InUtc) {
  EXPECT_EQ(FormatTime(kMoment), "2027-01-15T08:00:00Z");
  EXPECT_EQ(FormatMicroTime(kMoment), "2027-01-15T08:00:00.250000Z");
  EXPECT_EQ(FormatTime(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(FormatMicroTime(-0.5), "1969-12-31T23:59:59.500000Z");
}

TEST(TimeText, WhatIsRoundedUpCarriesOver) {
  EXPECT_EQ(FormatMicroTime(59.9999999), "1970-01-01T00:01:00.000000Z");
}

TEST(TimeText, ReadsWhatItWrites) {
  EXPECT_DOUBLE_EQ(ParseTime(FormatMicroTime(kMoment)).value_or(0), kMoment);
  EXPECT_DOUBLE_EQ(ParseTime(FormatTime(kMoment)).value_or(0), 1'800'000'000);
}

TEST(TimeText, ReadsOffsetsAndAnyFraction) {
  EXPECT_DOUBLE_EQ(ParseTime("2027-01-15T10:00:00.25+02:00").value_or(0), kMoment);
  EXPECT_DOUBLE_EQ(ParseTime("2027-01-15T07:30:00.2500000000-00:30").value_or(0), kMoment);
}

TEST(TimeText, RefusesAllElse) {
  for (const char* text :
       {"", "now", "2027-01-15", "2027-01-15T08:00:00", "2027-01-15 08:00:00Z",
        "2027-02-30T08:00:00Z", "2027-13-01T08:00:00Z", "2027-01-15T24:00:00Z",
        "2027-01-15T08:60:00Z", "2027-01-15T08:00:00.Z", "2027-01-15T08:00:00Zx",
        "2027-01-15T08:00:00+2:00", "-027-01-15T08:00:00Z", "2027-01-15T-8:00:00Z"}) {
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace optcache
