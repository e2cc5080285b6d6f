#include "cli/headspace/headspace_print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden_file.h"

namespace optcache::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

headspace::Report ExampleOfHeadspace() {
  headspace::Report report{
      .state = headspace::State::kDone,
      .message = "The sentence.",
      .loader = "default/local/images/train",
      .ranks = 1,
      .now = headspace::StepTime{.seconds = .4,
                                 .plus_minus = .01,
                                 .steps = 200,
                                 .samples = 256,
                                 .bytes = 28'000'000,
                                 .hit_ratio = .25},
      .free =
          headspace::StepTime{
              .seconds = .16, .plus_minus = .002, .steps = 200, .hit_ratio = std::nullopt},
      .what_if = {}};
  report.gain = headspace::GainOf(*report.now, *report.free);
  report.run = headspace::RunHours{
      .steps = 90'000, .announced = true, .hours_now = 10, .hours_free = 4, .hours_saved = 6};
  report.what_if = headspace::WhatIfOf(*report.now, *report.free, *report.gain);
  return report;
}

TEST(HeadspacePrint, SaysWhatWasMeasuredAndWhatFollows) {
  ExpectGolden(HeadspaceAsTable(ExampleOfHeadspace()), "cli/headspace.txt");
}

TEST(HeadspacePrint, WhereNothingIsKnownNothingIsSaid) {
  headspace::Report report = ExampleOfHeadspace();
  report.run.reset();
  report.gain->resolved = false;
  report.what_if = headspace::WhatIfOf(*report.now, *report.free, *report.gain);
  const std::string text = HeadspaceAsTable(report);
  EXPECT_THAT(text, HasSubstr("The sentence."));
  EXPECT_THAT(text, HasSubstr("--run-steps"));
  EXPECT_THAT(text, Not(HasSubstr("Up to")));
  EXPECT_THAT(text, Not(HasSubstr("SAVES")));
  EXPECT_THAT(text, HasSubstr("0 %    -"));
}

TEST(HeadspacePrint, WhatIsNotDoneIsItsSentence) {
  EXPECT_EQ(HeadspaceAsTable({.message = "Measured 3 of 20 steps.", .loader = "", .what_if = {}}),
            "Measured 3 of 20 steps.\n");
}

TEST(HeadspacePrint, ThePictureHasBothCurves) {
  const std::string svg = DrawHeadspace(ExampleOfHeadspace());
  EXPECT_THAT(svg, HasSubstr(">overlapped<"));
  EXPECT_THAT(svg, HasSubstr(">in turn<"));
  EXPECT_THAT(svg, HasSubstr(">as it is<"));
}

}  // namespace
}  // namespace optcache::cli
