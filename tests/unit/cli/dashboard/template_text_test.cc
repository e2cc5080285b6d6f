#include "cli/dashboard/template_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using ::testing::HasSubstr;

constexpr TemplateTimes kTimes{.range_seconds = 3600, .step_seconds = 15, .scrape_seconds = 30};

std::string Filled(std::string_view query, const TemplateValues& values) {
  const auto filled = FillQuery(query, values, kTimes);
  return filled ? *filled : filled.error().message();
}

TEST(FillQuery, WritesAllAsTheVariableSaysAndSeveralAsAlternatives) {
  EXPECT_EQ(Filled(R"(up{a=~"$node"})", {{"node", {.values = {}}}}), R"(up{a=~".*"})");
  EXPECT_EQ(Filled(R"(up{a=~"${node}"})", {{"node", {.values = {"n1"}}}}), R"(up{a=~"n1"})");
  EXPECT_EQ(Filled("$node", {{"node", {.values = {"n1", "n2"}}}}), "(n1|n2)");
}

// In a quoted text of PromQL each backslash is written twice; of `:regex` once.
TEST(FillQuery, EscapesWhatHasAMeaningInRegularExpressions) {
  const TemplateValues values{{"job", {.values = {R"(a.b+\c)"}}}};
  EXPECT_EQ(Filled("$job", values), R"(a\\.b\\+\\\\c)");
  EXPECT_EQ(Filled("${job:regex}", values), R"(a\.b\+\\c)");
}

TEST(FillQuery, KnowsGrafanasOwnTimes) {
  EXPECT_EQ(Filled("rate(x[$__rate_interval])", {}), "rate(x[120s])");
  EXPECT_EQ(Filled("increase(x[$__range]) / $__interval", {}), "increase(x[3600s]) / 15s");
  const auto wide = FillQuery("$__rate_interval", {}, {.step_seconds = 600, .scrape_seconds = 30});
  EXPECT_EQ(wide, "630s");
}

TEST(FillQuery, LeavesADollarThatNamesNothing) {
  EXPECT_EQ(Filled(R"(x{a=~"b$"})", {}), R"(x{a=~"b$"})");
  EXPECT_EQ(Filled("a$", {}), "a$");
}

TEST(FillQuery, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Filled("$nobody", {}), HasSubstr("variable $nobody is not known"));
  EXPECT_THAT(Filled("${job:csv}", {{"job", {}}}), HasSubstr("format ':csv' of variable job"));
}

TEST(FillLegend, PutsLabelsIn) {
  const SeriesLabels labels{{"__name__", "up"}, {"pod", "p"}, {"node", "n"}};
  EXPECT_EQ(FillLegend("{{pod}} on {{ node }}{{none}}", labels), "p on n");
  EXPECT_EQ(FillLegend("observed", labels), "observed");
  EXPECT_EQ(FillLegend("{{pod", labels), "{{pod");
  EXPECT_EQ(FillLegend("", labels), R"(up{node="n", pod="p"})");
}

}  // namespace
}  // namespace optcache::cli
