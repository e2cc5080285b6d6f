#include "cli/status/status_view.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using coordination::ClusterStatus;

ClusterStatus Busy() {
  ClusterStatus status{.version = {0, 17}};
  status.members = {{.id = 1,
                     .name = "node-0",
                     .address = "127.0.0.1:4100",
                     .metrics = "http://127.0.0.1:4200/metrics",
                     .capacity = 2_GiB,
                     .used = 1_GiB,
                     .silent_seconds = 0.4,
                     .applied = {0, 17}},
                    {.id = 3,
                     .name = "node-1",
                     .address = "127.0.0.1:4101",
                     .capacity = 2_GiB,
                     .silent_seconds = 12.3,
                     .applied = {0, 9}}};
  status.sidecars = {
      {.name = "sidecar-0", .socket = "/run/0.sock", .metrics = "http://127.0.0.1:4300/metrics"}};
  status.datasets = {
      {.name = "vision/imagenet",
       .total_samples = 1281167,
       .total_bytes = 140_GiB,
       .capacity = 4_GiB,
       .planned = {0, 16},
       .plan_digest = "ab",
       .sum =
           {.used_bytes = 1_GiB, .hits = 290, .peer_hits = 8, .misses = 702, .moved_bytes = 3_MiB},
       .ratios = {.observed = 0.298, .predicted = 0.3},
       .streams = {{.name = "vision/job/imagenet/train",
                    .incarnation = 2,
                    .pass = 4,
                    .position = 320291,
                    .length = 1281168,
                    .world = 8,
                    .ranks = 8,
                    .ranks_lost = 1,
                    .planned = true,
                    .rate = 2410.4},
                   {.name = "vision/job/imagenet/val",
                    .world = 8,
                    .ranks = 3,
                    .order_known = false,
                    .conflict = "seed: 0 (rank 0), 1 (rank 3)"}},
       .notes = {"the members' memory gives 50 % of the capacity asked for"}}};
  return status;
}

TEST(StatusView, FitsDatasetsNodesAndStreamsOnOneScreen) {
  EXPECT_EQ(FormatStatus(Busy()),
            "DATASET          SAMPLES    BYTES    CAPACITY  CACHED    RETENTION  PLAN VERSION  "
            "PREDICTED  OBSERVED  STORE READS  MOVED\n"
            "vision/imagenet  1,281,167  140 GiB  4.00 GiB  1.00 GiB  optimal    0.16          "
            "30.0 %     29.8 %    702          3.00 MiB\n"
            "\n"
            "NODE    ID  ADDRESS         MEMORY    USED      STATE VERSION  HEARD     METRICS\n"
            "node-0  1   127.0.0.1:4100  2.00 GiB  1.00 GiB  0.17           now       "
            "http://127.0.0.1:4200/metrics\n"
            "node-1  3   127.0.0.1:4101  2.00 GiB  0 B       0.9            12 s ago  -\n"
            "\n"
            "SIDECAR    SOCKET       METRICS\n"
            "sidecar-0  /run/0.sock  http://127.0.0.1:4300/metrics\n"
            "\n"
            "STREAM                       RANKS        PASS  DONE    RATE    ORDER    PLANNED\n"
            "vision/job/imagenet/train#2  8/8, 1 lost  4     25.0 %  2410/s  known    yes\n"
            "vision/job/imagenet/val#0    3/8          0     0.0 %   -       unknown  no\n"
            "\n"
            "vision/imagenet: the members' memory gives 50 % of the capacity asked for\n"
            "vision/imagenet: the ranks of vision/job/imagenet/val disagree on seed: 0 (rank 0), 1 "
            "(rank 3); its order is not known\n");
}

TEST(StatusView, WhatWasSavedStandsBeforeWhatNeedsAttention) {
  const std::string text = FormatStatus(Busy(), "What was saved.\n");
  EXPECT_LT(text.find("vision/job/imagenet/val"), text.find("\n\nWhat was saved.\n\n"));
  EXPECT_LT(text.find("What was saved."), text.find("vision/imagenet: the members' memory"));
}

TEST(StatusView, SaysWhatNodesOfferOnDisks) {
  ClusterStatus status;
  status.members = {{.id = 1,
                     .name = "node-0",
                     .address = "a:1",
                     .capacity = 16_MiB,
                     .disk = 450_MiB,
                     .used = 57_MiB,
                     .disk_used = 50_MiB},
                    {.id = 2, .name = "node-1", .address = "a:2", .capacity = 16_MiB}};
  const std::string text = FormatStatus(status);
  EXPECT_NE(
      text.find(
          "NODE    ID  ADDRESS  MEMORY    USED      DISK     ON DISK   STATE VERSION  HEARD  "
          "METRICS\n"
          "node-0  1   a:1      16.0 MiB  7.00 MiB  450 MiB  50.0 MiB  0.0            now    -\n"
          "node-1  2   a:2      16.0 MiB  0 B       -        0 B       0.0            now    -\n"),
      std::string::npos)
      << text;
}

TEST(StatusView, SaysWhatIsMissingInAnEmptyCluster) {
  ClusterStatus status;
  status.datasets = {{.name = "default/images", .total_samples = 10, .total_bytes = 100}};
  EXPECT_EQ(FormatStatus(status),
            "DATASET         SAMPLES  BYTES  CAPACITY  CACHED  RETENTION  PLAN VERSION  PREDICTED  "
            "OBSERVED  STORE READS  MOVED\n"
            "default/images  10       100 B  0 B       0 B     optimal    -             -          "
            "-         0            0 B\n"
            "\n"
            "No node reports yet.\n"
            "\n"
            "No training job is attached.\n");
}

TEST(StatusView, ShowsAnEarlierManifestWhileJobsReadIt) {
  ClusterStatus status;
  status.datasets = {{.name = "vision/birds", .total_samples = 12}};
  status.retiring = {{.name = "vision/birds",
                      .manifest_digest = "8b1f000000000000ffff",
                      .total_samples = 10,
                      .streams = {{.name = "vision/job/birds/train", .world = 1, .ranks = 1}}}};
  const std::string text = FormatStatus(status);
  EXPECT_NE(text.find("\nvision/birds               12 "), std::string::npos) << text;
  EXPECT_NE(text.find("\nvision/birds@8b1f00000000  10 "), std::string::npos) << text;
  EXPECT_NE(text.find("\nvision/job/birds/train#0  1/1 "), std::string::npos) << text;
}

TEST(StatusView, IsOneLineForALog) {
  EXPECT_EQ(FormatStatusLine(Busy()),
            "nodes 2; vision/imagenet: streams 2, hits 29.8 % (predicted 30.0 %), store reads 702, "
            "moved 3.00 MiB");
}

}  // namespace
}  // namespace optcache::cli
