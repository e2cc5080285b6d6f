#include "cli/explain/finding.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(Findings, AreALineEachAndWhatToDoBelowIt) {
  const std::vector<Finding> findings = {
      {.severity = Severity::kOk, .about = "clock", .what = "fine", .to_do = ""},
      {.severity = Severity::kFault, .about = "memory", .what = "none \"left\"", .to_do = "Add."}};
  EXPECT_EQ(FindingsAsText(findings),
            "ok       clock: fine\nfault    memory: none \"left\"\n         Add.\n");
  EXPECT_EQ(FindingsAsJson(findings), R"({
  "findings": [
    {
      "severity": "ok",
      "about": "clock",
      "what": "fine",
      "do": ""
    },
    {
      "severity": "fault",
      "about": "memory",
      "what": "none \"left\"",
      "do": "Add."
    }
  ]
}
)");
}

TEST(Findings, TextOfSeveralLinesIsIndented) {
  EXPECT_EQ(FindingsAsText({Warn("events", "one\nok       two: fine", "Run:\n  ls")}),
            "warning  events: one\n         ok       two: fine\n         Run:\n           ls\n");
}

TEST(Findings, TextFromOutsideForgesNoLine) {
  EXPECT_EQ(FindingsAsText({Warn("a\rok", "x\rok       y\x1b[2K", "z\xc2\x9b")}),
            "warning  a\\u000dok: x\\u000dok       y\\u001b[2K\n         z\\u009b\n");
  const Explanation explanation{.kind = "", .name = "", .verdict = "Job \x1b", .findings = {}};
  EXPECT_EQ(ExplanationAsText(explanation), "Job \\u001b\n");
}

TEST(Findings, FaultsComeFirstAndCausesStayBeforeEffects) {
  std::vector<Finding> findings = {Fine("a", ""), Warn("b", "", ""), Fault("c", "", ""),
                                   Fine("d", ""), Warn("e", "", ""), Fault("f", "", "")};
  PutUrgentFirst(findings);
  std::string order;
  for (const Finding& finding : findings)
    order += finding.about;
  EXPECT_EQ(order, "cfbead");
  EXPECT_TRUE(HasFault(findings));
  EXPECT_FALSE(HasFault({Fine("a", ""), Warn("b", "", "")}));
}

TEST(Findings, AnExplanationBeginsWithItsVerdict) {
  const Explanation explanation{.kind = "Dataset",
                                .name = "vision/a",
                                .verdict = "Dataset vision/a is Ready.",
                                .findings = {Fine("index", "10 samples")}};
  EXPECT_EQ(ExplanationAsText(explanation),
            "Dataset vision/a is Ready.\nok       index: 10 samples\n");
  EXPECT_EQ(ExplanationAsJson(explanation), R"({
  "kind": "Dataset",
  "name": "vision/a",
  "verdict": "Dataset vision/a is Ready.",
  "findings": [
    {
      "severity": "ok",
      "about": "index",
      "what": "10 samples",
      "do": ""
    }
  ]
}
)");
}

}  // namespace
}  // namespace optcache::cli
