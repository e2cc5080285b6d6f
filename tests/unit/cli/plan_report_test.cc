#include "cli/plan/plan_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

plan::TableFigures FiguresOf(std::uint64_t hits) {
  return {.reads = 20,
          .hits = hits,
          .dropped = 3,
          .most_held = 2,
          .hits_by_tenth = {0, 1, 2, 0, 1, 0, 1, 0, 1, hits - 6},
          .reads_by_tenth = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2}};
}

PlanReport ReportOfFile() {
  return {.file = "a.safetensors",
          .maxsize = 3,
          .dataset_size = 10,
          .seed = 5,
          .samples_read = 9,
          .recipe = "torch-random size=10 seed=5",
          .one_process = FiguresOf(7),
          .shared = FiguresOf(6)};
}

PlanReport ReportWithComparison() {
  PlanReport report = ReportOfFile();
  report.comparison = {.published = FiguresOf(7),
                       .published_shared = FiguresOf(6),
                       .optimal = FiguresOf(8),
                       .unlike_rows = 2,
                       .first_unlike = 4};
  return report;
}

constexpr const char* kGlance =
    R"(a.safetensors
  reads      20, of 9 samples of 10
  order      torch-random size=10 seed=5
  capacity   3 samples; at most 2 are held
  hit ratio  0.3500 in one process, 0.3000 by the shared runtime
  by tenth   0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 0.500
)";

TEST(PlanReport, AtAGlance) {
  EXPECT_EQ(PlanAsText(ReportOfFile()), kGlance);
}

TEST(PlanReport, AnOrderThatNobodyKnowsIsListed) {
  PlanReport report = ReportOfFile();
  report.recipe.clear();
  EXPECT_NE(PlanAsText(report).find("  order      as listed; seed 5\n"), std::string::npos);
}

TEST(PlanReport, ComparesWithTheOptimum) {
  EXPECT_EQ(ComparisonAsText(ReportWithComparison()), std::string(kGlance) +
                                                          R"(
TABLE             RUNTIME      STORE READS  HITS    OF OPTIMUM  HITS BY TENTH OF THE RUN
this file         one process  13           0.3500  0.8750      0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 0.500
this file         shared       14           0.3000  0.7500      0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 0.000
OPT4TorchDataset  one process  13           0.3500  0.8750      0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 0.500
OPT4TorchDataset  shared       14           0.3000  0.7500      0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 0.000
optimal           either       12           0.4000  1.0000      0.000 0.500 1.000 0.000 0.500 0.000 0.500 0.000 0.500 1.000
OPT4TorchDataset decides 2 of the 20 rows otherwise than this file, row 4 first.
An optimal table spares 1 of the store reads in one process, 2 by the shared runtime:
  optcache plan export a.safetensors --output FILE
)");
}

TEST(PlanReport, SaysThatNothingIsBetter) {
  PlanReport report = ReportWithComparison();
  report.one_process = report.shared = FiguresOf(8);
  report.comparison->unlike_rows = 0;
  const std::string text = ComparisonAsText(report);
  EXPECT_TRUE(
      text.ends_with("OPT4TorchDataset decides every row as this file does.\n"
                     "It is optimal: no table has more hits, by either runtime.\n"))
      << text;
}

TEST(PlanReport, FiguresForScripts) {
  const auto json = nlohmann::json::parse(PlanAsJson(ReportWithComparison()));
  EXPECT_EQ(json["reads"], 20);
  EXPECT_EQ(json["samplesRead"], 9);
  EXPECT_EQ(json["recipe"], "torch-random size=10 seed=5");
  EXPECT_EQ(json["oneProcess"]["hitRatio"], 0.35);
  EXPECT_EQ(json["shared"]["storeReads"], 14);
  EXPECT_EQ(json["optimal"]["hits"], 8);
  EXPECT_EQ(json["oneProcess"]["hitRatioByTenth"][2], 1.0);
  const std::string table = PlanAsTable(ReportWithComparison());
  EXPECT_TRUE(table.starts_with("reads                            20\n")) << table;
  EXPECT_NE(table.find("oneProcess.hitRatio              0.350000\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace optcache::cli
