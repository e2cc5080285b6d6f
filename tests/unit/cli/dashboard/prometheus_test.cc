#include "cli/dashboard/prometheus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Prometheus, ReadsSpansAndMoments) {
  EXPECT_EQ(ParseSpan("90s"), 90);
  EXPECT_EQ(ParseSpan("15m"), 900);
  EXPECT_EQ(ParseSpan("1.5h"), 5400);
  EXPECT_EQ(ParseSpan("2d"), 172'800);
  EXPECT_EQ(ParseMoment("1970-01-02T00:00:01Z"), 86'401);
  EXPECT_EQ(ParseMoment("2026-01-05T10:00:00Z"), 1'767'607'200);
  EXPECT_EQ(ParseMoment("1767607200.5"), 1'767'607'200.5);
}

TEST(Prometheus, RefusesTimesThatAreNone) {
  for (const char* text : {"", "1", "s", "-1h", "0s", "1w", "1e9d", "nan", "1h "})
    EXPECT_FALSE(ParseSpan(text)) << text;
  for (const char* text : {"", "yesterday", "2026-02-30T10:00:00Z", "2026-01-05T10:00:00",
                           "2026-01-05T25:00:00Z", "2026-01-05T10:00:00Zx", "-5", "1e20"}) {
    EXPECT_FALSE(ParseMoment(text)) << text;
  }
}

TEST(Prometheus, RefusesRangesThatPrometheusWould) {
  EXPECT_TRUE(CheckTimeRange({.from = 0, .to = 100, .step = 1}).ok());
  EXPECT_FALSE(CheckTimeRange({.from = 100, .to = 100, .step = 1}).ok());
  EXPECT_FALSE(CheckTimeRange({.from = 0, .to = 100, .step = 0}).ok());
  EXPECT_THAT(CheckTimeRange({.from = 0, .to = 86'400, .step = 1}).message(),
              HasSubstr("take a --step of at least 8s"));
}

TEST(Prometheus, AsksByForm) {
  const TimeRange range{.from = 10, .to = 20.5, .step = 2};
  const auto over_time = MakeQuestion(R"(a{b="c d"} + 1)", range, /*instant=*/false);
  EXPECT_EQ(over_time.path, "/api/v1/query_range");
  EXPECT_EQ(over_time.form,
            "query=a%7Bb%3D%22c%20d%22%7D%20%2B%201&start=10.000&end=20.500&step=2.000");
  const auto now = MakeQuestion("up", range, /*instant=*/true);
  EXPECT_EQ(now.path, "/api/v1/query");
  EXPECT_EQ(now.form, "query=up&time=20.500");
}

TEST(Prometheus, ReadsSeriesWithoutWhatIsNoNumber) {
  const auto answer = ParseAnswer(200, R"({"status": "success", "data": {"resultType": "matrix",
      "result": [{"metric": {"a": "b"}, "values": [[1, "0.5"], [2, "NaN"], [3, "+Inf"], [4, "7"]]},
                 {"metric": {}, "value": [9.5, "1"]}, {"metric": {"c": "d"}}]}})");
  ASSERT_TRUE(answer.has_value());
  ASSERT_EQ(answer->size(), 3U);
  EXPECT_THAT((*answer)[0].labels, ElementsAre(Pair("a", "b")));
  EXPECT_THAT((*answer)[0].points, ElementsAre(Pair(1, 0.5), Pair(4, 7)));
  EXPECT_THAT((*answer)[1].points, ElementsAre(Pair(9.5, 1)));
  EXPECT_THAT((*answer)[2].points, IsEmpty());
}

TEST(Prometheus, PassesOnWhyAQueryIsRefused) {
  const auto answer = ParseAnswer(
      400, R"({"status": "error", "errorType": "bad_data", "error": "parse error at char 3"})");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(answer.error().message(), HasSubstr("parse error at char 3"));
}

TEST(Prometheus, KnowsWhenSomethingElseAnswers) {
  for (const char* body : {"<html>Sign in</html>", "", "[]", R"({"status": "success"})",
                           R"({"status": "success", "data": {"result": 5}})"}) {
    const auto answer = ParseAnswer(200, body);
    ASSERT_FALSE(answer.has_value()) << body;
    EXPECT_EQ(answer.error().code(), Code::kUnavailable) << body;
  }
}

TEST(Prometheus, RefusesAScalar) {
  const auto answer = ParseAnswer(
      200, R"({"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}})");
  ASSERT_FALSE(answer.has_value());
  EXPECT_THAT(answer.error().message(), HasSubstr("vector("));
}

TEST(Prometheus, LeavesOutWhatIsMalformed) {
  const auto answer = ParseAnswer(
      200, R"({"status": "success", "data": {"result": [{"metric": 3, "values": [[], 1, ["x", 2],
           [1, 2], [5, "6"]]}, {"metric": [1], "value": "no"}]}})");
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT((*answer)[0].points, ElementsAre(Pair(5, 6)));
  EXPECT_THAT((*answer)[1].points, IsEmpty());
}

}  // namespace
}  // namespace optcache::cli
