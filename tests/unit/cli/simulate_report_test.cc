#include "cli/simulate_report.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

SimulateReport SmallReport() {
  plan::PolicyResult optimal;
  optimal.store_reads = 870015;
  optimal.hit_ratio = 0.25;
  optimal.hit_ratio_by_tenth.fill(0.5);
  optimal.moved_per_access = 0.125;
  return {.bound = 870000,
          .lines = {{.policy = plan::PolicyKind::kOptimal, .result = optimal},
                    {.policy = plan::PolicyKind::kNone, .result = {.store_reads = 1200000}}}};
}

TEST(SimulateReport, JsonHasOneObjectAPolicy) {
  SimulateReport report = SmallReport();
  report.lines.resize(1);
  EXPECT_EQ(ReportAsJson(report), R"({
  "bound": 870000,
  "policies": {
    "optimal": {
      "storeReads": 870015,
      "hitRatio": 0.25,
      "hitRatioByTenth": [
        0.5,
        0.5,
        0.5,
        0.5,
        0.5,
        0.5,
        0.5,
        0.5,
        0.5,
        0.5
      ],
      "movedPerAccess": 0.125,
      "peerPerAccess": 0.0,
      "capacityExceeded": 0
    }
  }
}
)");
}

TEST(SimulateReport, JsonHasNoBoundForSeveralJobs) {
  EXPECT_EQ(ReportAsJson({.bound = {}, .lines = {}}),
            "{\n  \"bound\": null,\n  \"policies\": {}\n}\n");
}

TEST(SimulateReport, TableLinesUp) {
  EXPECT_EQ(
      ReportAsTable(SmallReport()),
      "POLICY    STORE READS  OF BOUND    HITS   MOVED    PEER  HITS BY TENTH OF AN EPOCH\n"
      "optimal        870015   1.00002  0.2500  0.1250  0.0000  0.500 0.500 0.500 0.500 0.500 "
      "0.500 0.500 0.500 0.500 0.500\n"
      "none          1200000   1.37931  0.0000  0.0000  0.0000  0.000 0.000 0.000 0.000 0.000 "
      "0.000 0.000 0.000 0.000 0.000\n"
      "No cache of this size reads less than 870000.\n");
}

}  // namespace
}  // namespace optcache::cli
