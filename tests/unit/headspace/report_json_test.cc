#include "headspace/report_json.h"

#include <gtest/gtest.h>

namespace optcache::headspace {
namespace {

Report Example() {
  return {
      .state = State::kDone,
      .message = "Said \"so\".",
      .loader = "default/local/images/train",
      .ranks = 2,
      .options = {.warmup_steps = 1, .steps = 20, .free_steps = 30, .run_steps = 40},
      .measured_steps = 20,
      .free_steps = 30,
      .now = StepTime{.seconds = .5,
                      .plus_minus = .01,
                      .steps = 20,
                      .samples = 8,
                      .bytes = 800,
                      .waited = .25,
                      .hit_ratio = .5},
      .free = StepTime{.seconds = .25, .steps = 30, .hit_ratio = std::nullopt},
      .gain = Gain{.seconds = .25,
                   .plus_minus = .02,
                   .resolved = true,
                   .speedup = 2,
                   .speedup_low = 1.75,
                   .speedup_high = std::nullopt},
      .run =
          RunHours{
              .steps = 40, .announced = true, .hours_now = 4, .hours_free = 2, .hours_saved = 2},
      .what_if = {{.hit_ratio = 0, .seconds = 1, .seconds_in_turn = std::nullopt}}};
}

TEST(HeadspaceJson, AReportComesBackAsItWas) {
  const std::string json = ReportAsJson(Example());
  const Report report = ParseReport(json).value();
  EXPECT_EQ(ReportAsJson(report), json);
  EXPECT_EQ(report.options, Example().options);
  EXPECT_EQ(report.message, "Said \"so\".");
  EXPECT_EQ(report.gain->speedup_high, std::nullopt);
  EXPECT_EQ(report.what_if.at(0).seconds, 1);
  EXPECT_NE(json.find("\"results\": \"not-for-use\""), std::string::npos);
}

TEST(HeadspaceJson, WhatIsNotMeasuredYetIsLeftOut) {
  const Report report =
      ParseReport(ReportAsJson({.message = "", .loader = "", .what_if = {}})).value();
  EXPECT_EQ(report.state, State::kWaiting);
  EXPECT_FALSE(report.now || report.free || report.gain || report.run);
}

TEST(HeadspaceJson, ARunOfUnknownLengthIsLeftOut) {
  Report report = Example();
  report.run->steps = 0;
  EXPECT_FALSE(ParseReport(ReportAsJson(report)).value().run.has_value());
}

TEST(HeadspaceJson, WhatIsNoReportIsAnError) {
  for (const char* const text :
       {"", "[]", "{}", "null", R"({"version": 1})", R"({"version": 2})",
        R"({"version": 1, "state": "else"})", R"({"version": 1, "state": 7})"}) {
    const auto report = ParseReport(text);
    ASSERT_FALSE(report.has_value()) << text;
    EXPECT_EQ(report.error().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace optcache::headspace
