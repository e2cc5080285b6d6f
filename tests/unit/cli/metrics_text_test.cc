#include "cli/local/metrics_text.h"

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using testing::ElementsAre;

TEST(ParseMetrics, ReadsNamesLabelsAndValues) {
  EXPECT_THAT(
      ParseMetrics("# HELP a Bytes{x=\"1\"} 7\n"
                   "# TYPE a counter\n"
                   "a 3\n"
                   "a{} -4 1395066363000\n"
                   "a_b{x=\"1\",y=\"two words\",} 1.5e+06\n"
                   "a{x=\"+\"}\t+Inf"),
      ElementsAre(
          MetricSample{.name = "a", .labels = {}, .value = 3},
          MetricSample{.name = "a", .labels = {}, .value = -4},
          MetricSample{.name = "a_b", .labels = {{"x", "1"}, {"y", "two words"}}, .value = 1.5e6},
          MetricSample{.name = "a",
                       .labels = {{"x", "+"}},
                       .value = std::numeric_limits<double>::infinity()}));
}

TEST(ParseMetrics, ResolvesEscapes) {
  EXPECT_THAT(ParseMetrics(R"(a{x="\"q\" } \\ \n{,",y=""} 1)"),
              ElementsAre(MetricSample{
                  .name = "a", .labels = {{"x", "\"q\" } \\ \n{,"}, {"y", ""}}, .value = 1}));
}

TEST(ParseMetrics, LeavesOutWhatIsNoSample) {
  for (const char* line : {"", "\n\n", "a", "a{", "a{x", "a{x=", "a{x=\"", "a{x=\"1\\", "a{x=\"1\"",
                           "a{x=1} 2", "a{x=\"1\"}", "a{x=\"1\"} b", "a b", " ", "<html>"})
    EXPECT_THAT(ParseMetrics(line), ElementsAre()) << line;
}

TEST(SumOf, IsOverTheOtherLabels) {
  const auto samples =
      ParseMetrics("a{x=\"1\",y=\"1\"} 1\na{x=\"1\",y=\"2\"} 2\na{x=\"2\"} 4\na 8\na_total 16\n");
  EXPECT_EQ(SumOf(samples, "a", "x", "1"), 3);
  EXPECT_EQ(SumOf(samples, "a"), 15);
  EXPECT_EQ(SumOf(samples, "b"), 0);
}

TEST(ToWhole, StaysWithinItsType) {
  using Signed = std::numeric_limits<std::int64_t>;
  using Unsigned = std::numeric_limits<std::uint64_t>;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(ToWhole<std::int64_t>(-2.9), -2);
  EXPECT_EQ(ToWhole<std::uint64_t>(2.9), 2U);
  EXPECT_EQ(ToWhole<std::int64_t>(0x1p62), std::int64_t{1} << 62U);
  EXPECT_EQ(ToWhole<std::uint64_t>(0x1p63), std::uint64_t{1} << 63U);
  for (const double large : {0x1p64, 1e300, kInfinity}) {
    EXPECT_EQ(ToWhole<std::int64_t>(large), Signed::max());
    EXPECT_EQ(ToWhole<std::uint64_t>(large), Unsigned::max());
    EXPECT_EQ(ToWhole<std::int64_t>(-large), Signed::min());
    EXPECT_EQ(ToWhole<std::uint64_t>(-large), 0U);
  }
  EXPECT_EQ(ToWhole<std::int64_t>(kNan), 0);
  EXPECT_EQ(ToWhole<std::uint64_t>(kNan), 0U);
}

}  // namespace
}  // namespace optcache::cli
