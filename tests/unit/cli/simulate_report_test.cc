#include "cli/simulate/simulate_report.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using simulation::PolicyKind;

SimulateReport SmallReport() {
  simulation::PolicyResult optimal;
  optimal.store_reads = 870015;
  optimal.store_bytes = 870015;
  optimal.hit_ratio = 0.25;
  optimal.byte_hit_ratio = 0.25;
  optimal.hit_ratio_by_tenth.fill(0.5);
  optimal.moved_per_access = 0.125;
  optimal.local_per_access = 0.25;
  return {.bound = {.store_reads = 870000, .store_bytes = 870000},
          .lines = {{.policy = PolicyKind::kOptimal, .result = optimal},
                    {.policy = PolicyKind::kLfuForEver, .result = {.store_reads = 1200000}}}};
}

SimulateReport FullReport() {
  SimulateReport report = SmallReport();
  report.sizes_vary = true;
  report.stores = {{.bandwidth = 0.7}};
  report.lines[0].result.epoch_time = {1.002};
  report.lines[1].result.epoch_time = {1.4286};
  return report;
}

TEST(SimulateReport, JsonHasOneObjectAPolicy) {
  SimulateReport report = FullReport();
  report.lines.resize(1);
  report.lines[0].result.hit_ratio_by_tenth = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.75};
  EXPECT_EQ(ReportAsJson(report), R"({
  "bound": {
    "storeReads": 870000,
    "storeBytes": 870000
  },
  "policies": {
    "optimal": {
      "storeReads": 870015,
      "storeBytes": 870015,
      "hitRatio": 0.25,
      "byteHitRatio": 0.25,
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
        0.75
      ],
      "localPerAccess": 0.25,
      "peerPerAccess": 0.0,
      "movedPerAccess": 0.125,
      "epochTime": [
        {
          "storeBandwidth": 0.7,
          "ratio": 1.002
        }
      ]
    }
  }
}
)");
}

TEST(SimulateReport, JsonSaysNullWhereThereIsNoBound) {
  EXPECT_EQ(ReportAsJson({}),
            "{\n  \"bound\": {\n    \"storeReads\": null,\n    \"storeBytes\": null\n  },\n"
            "  \"policies\": {}\n}\n");
}

TEST(SimulateReport, CsvHasALineAPolicy) {
  SimulateReport report = FullReport();
  report.lines.resize(1);
  EXPECT_EQ(ReportAsCsv(report),
            "policy,store_reads,store_bytes,bound_reads,bound_bytes,hit_ratio,byte_hit_ratio,local,"
            "peer,moved,tenth_1,tenth_2,tenth_3,tenth_4,tenth_5,tenth_6,tenth_7,tenth_8,tenth_9,"
            "tenth_10,epoch_time_at_0.7\n"
            "optimal,870015,870015,870000,870000,0.250000,0.250000,0.250000,0.000000,0.125000,"
            "0.500000,0.500000,0.500000,0.500000,0.500000,0.500000,0.500000,0.500000,0.500000,"
            "0.500000,1.002000\n");
}

TEST(SimulateReport, TableLinesUp) {
  EXPECT_EQ(
      ReportAsTable(SmallReport()),
      "POLICY       STORE READS  OF BOUND    HITS   LOCAL    PEER   MOVED  HITS BY TENTH OF AN "
      "EPOCH\n"
      "optimal           870015   1.00002  0.2500  0.2500  0.0000  0.1250  0.500 0.500 0.500 "
      "0.500 0.500 0.500 0.500 0.500 0.500 0.500\n"
      "lfu-for-ever     1200000   1.37931  0.0000  0.0000  0.0000  0.0000  0.000 0.000 0.000 "
      "0.000 0.000 0.000 0.000 0.000 0.000 0.000\n"
      "No cache of this size reads less than 870000 samples.\n");
}

TEST(SimulateReport, TableSaysMoreWhereSizesVaryAndTheStoreIsSlow) {
  SimulateReport report = FullReport();
  report.lines.resize(1);
  EXPECT_EQ(ReportAsTable(report),
            "POLICY       STORE READS  OF BOUND STORE BYTES  OF BOUND   BYTES  TIME@0.7    HITS   "
            "LOCAL    PEER   MOVED  HITS BY TENTH OF AN EPOCH\n"
            "optimal           870015   1.00002     850 KiB   1.00002  0.2500     1.002  0.2500  "
            "0.2500  0.0000  0.1250  0.500 0.500 0.500 0.500 0.500 0.500 0.500 0.500 0.500 0.500\n"
            "No cache of this size reads less than 870000 samples, or 850 KiB.\n"
            "TIME@b: epoch time / compute time while the store delivers b of what the jobs could "
            "read.\n");
}

}  // namespace
}  // namespace optcache::cli
