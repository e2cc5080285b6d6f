#include "cli/datasets/dataset_usage.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::cli {
namespace {

constexpr const char* kDatasetsOfCluster = R"({"kind": "List", "items": [
  {"kind": "Dataset", "metadata": {"namespace": "speech", "name": "calls"},
   "status": {"conditions": [{"type": "Indexed", "status": "False"}]}},
  {"kind": "Dataset", "metadata": {"namespace": "vision", "name": "imagenet"},
   "status": {"samples": 14059, "bytes": 134217728, "cachedBytes": 41943040,
              "capacity": {"granted": 44040192},
              "nodes": [{"name": "m1", "bytes": 31457280}, {"name": "m2", "bytes": 10485760}]}}]})";

TEST(DatasetUsage, ShowsWhoTakesMostFirst) {
  const auto usage = ReadDatasetUsage(kDatasetsOfCluster, {});
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(FormatDatasetUsage(*usage, false),
            "DATASET          SAMPLES  BYTES    GRANTED   CACHED    PART\n"
            "vision/imagenet  14059    128 MiB  42.0 MiB  40.0 MiB  31.2 %\n"
            "speech/calls     -        -        0 B       0 B       -\n"
            "total            14059    128 MiB  42.0 MiB  40.0 MiB  31.2 %\n");
}

TEST(DatasetUsage, ShowsNodesOnRequest) {
  const auto usage = ReadDatasetUsage(kDatasetsOfCluster, {"imagenet"});
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(FormatDatasetUsage(*usage, true),
            "DATASET          SAMPLES  BYTES    GRANTED   CACHED    PART\n"
            "vision/imagenet  14059    128 MiB  42.0 MiB  40.0 MiB  31.2 %\n"
            "  m1                                         30.0 MiB  23.4 %\n"
            "  m2                                         10.0 MiB  7.8 %\n");
}

TEST(DatasetUsage, GivesScriptsAllOfIt) {
  const auto usage = ReadDatasetUsage(kDatasetsOfCluster, {});
  ASSERT_TRUE(usage) << usage.error().message();
  const auto json = nlohmann::json::parse(ToJson(*usage));
  EXPECT_EQ(json["total"]["cachedBytes"], 41943040);
  EXPECT_EQ(json["datasets"][0]["name"], "vision/imagenet");
  EXPECT_EQ(json["datasets"][0]["nodes"][1],
            (nlohmann::json{{"name", "m2"}, {"cachedBytes", 10485760}}));
  EXPECT_TRUE(json["datasets"][1]["nodes"].is_array());
}

TEST(DatasetUsage, SaysWhatIsMissing) {
  EXPECT_EQ(ReadDatasetUsage(kDatasetsOfCluster, {"imagenet", "none"}).error().message(),
            "there is no Dataset none: `kubectl get datasets -A` lists them all");
  EXPECT_EQ(ReadDatasetUsage("no JSON", {}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(FormatDatasetUsage({}, true), "No Datasets found. -A looks in all namespaces\n");
}

}  // namespace
}  // namespace optcache::cli
