#include "base/duration_text.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

using std::chrono::milliseconds;

TEST(ParseDuration, ReadsWhatKubectlReads) {
  EXPECT_EQ(ParseDuration("0").value(), milliseconds(0));
  EXPECT_EQ(ParseDuration("0s").value(), milliseconds(0));
  EXPECT_EQ(ParseDuration("90s").value(), milliseconds(90'000));
  EXPECT_EQ(ParseDuration("1h30m").value(), milliseconds(5'400'000));
  EXPECT_EQ(ParseDuration("1m500ms").value(), milliseconds(60'500));
  for (const char* text : {"", "5", "s", "-1s", "1d", "1h-2m", "2401h", "99999999999999999999s",
                           "2400h1ms", "1.5h", " 1s"})
    EXPECT_EQ(ParseDuration(text).error().code(), Code::kInvalidArgument) << text;
}

TEST(FormatDuration, IsReadBackAsItWas) {
  for (const char* text : {"0s", "90ms", "1s", "10m", "1h30m", "24h", "2h1s", "3m20s5ms"})
    EXPECT_EQ(FormatDuration(ParseDuration(text).value()), text);
  EXPECT_EQ(FormatDuration(ParseDuration("90s").value()), "1m30s");
}

TEST(ParseDurationWithin, TakesWholeSecondsWithinTheBounds) {
  const DurationBounds bounds{
      .least = milliseconds(2'000), .most = milliseconds(60'000), .allowed = "from 2s to 1m"};
  EXPECT_EQ(ParseDurationWithin("2s", bounds).value(), bounds.least);
  EXPECT_EQ(ParseDurationWithin("1m", bounds).value(), bounds.most);
  for (const char* text : {"1s", "61s", "2s500ms", "soon"}) {
    const auto duration = ParseDurationWithin(text, bounds);
    ASSERT_FALSE(duration) << text;
    EXPECT_EQ(duration.error().message(),
              "'" + std::string(text) + "', allowed: a span of time from 2s to 1m");
  }
}

}  // namespace
}  // namespace optcache
