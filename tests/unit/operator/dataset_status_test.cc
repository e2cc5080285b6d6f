#include "operator/api/dataset_status.h"

#include <gtest/gtest.h>

namespace optcache::api {
namespace {

using kube::Json;

TEST(DatasetStatus, ReadsWhatItWrites) {
  const DatasetStatus status{.observed_generation = 3,
                             .index_hash = "h",
                             .manifest_digest = "d",
                             .samples = 5,
                             .bytes = 2048,
                             .largest_sample = 7,
                             .manifest_holders = 2,
                             .cached_bytes = 1024,
                             .hit_ratio = 0.25,
                             .predicted_hit_ratio = 0.5,
                             .nodes = {{"a", 1}, {"b", 2}},
                             .capacity = CapacityStatus{.granted = 8,
                                                        .on_disk = 3,
                                                        .guaranteed = 2,
                                                        .maximum = 9,
                                                        .read_rate = 7,
                                                        .saved_rate = 5},
                             .last_change = SourceChange{.added = 1,
                                                         .changed = 2,
                                                         .removed = 3,
                                                         .message = "1 object added (first a)",
                                                         .at = "2026-11-27T15:00:00Z"}};
  const Json json = ToJson(status);
  EXPECT_EQ(json["size"], "2.00 KiB");
  EXPECT_EQ(json["hitRatio"], "0.250");
  EXPECT_EQ(json["lastChange"]["removed"], 3);
  EXPECT_EQ(ToJson(ParseDatasetStatus({{"status", json}})), json);
}

TEST(DatasetStatus, WhatCannotBeReadIsMadeAnew) {
  const DatasetStatus status = ParseDatasetStatus(Json::parse(
      R"({"status": {"samples": -5, "hitRatio": "high", "nodes": [{}], "bytes": "x"}})"));
  EXPECT_EQ(status.samples, 0U);
  EXPECT_EQ(status.bytes, 0U);
  EXPECT_FALSE(status.hit_ratio);
}

}  // namespace
}  // namespace optcache::api
