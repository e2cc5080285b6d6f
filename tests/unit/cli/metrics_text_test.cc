#include "cli/metrics_text.h"

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

}  // namespace
}  // namespace optcache::cli
