#include "cli/status/cluster_view.h"

#include <gtest/gtest.h>

#include "cli/terminal/yaml_text.h"
#include "support/golden_file.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

constexpr const char* kClusterResources = R"({"kind": "List", "items": [
  {"kind": "Dataset", "metadata": {"namespace": "vision", "name": "imagenet"},
   "status": {"samples": 14059, "bytes": 133333333, "cachedBytes": 40000000, "hitRatio": "0.302",
              "predictedHitRatio": "0.300",
              "capacity": {"granted": 44040192, "savedBytesPerSecond": 36700160},
              "saved": {"requests": 870000, "bytes": -2048, "size": "-2.00 KiB", "waitedSeconds": 41,
                        "cost": "8.36", "time": "2027-01-15T08:00:00Z"},
              "nodes": [{"name": "m1", "bytes": 30000000}, {"name": "m2", "bytes": 10000000}],
              "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""},
                             {"type": "Degraded", "status": "False", "reason": "AllWell", "message": ""}]}},
  {"kind": "Dataset", "metadata": {"namespace": "speech", "name": "calls"},
   "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NotIndexed",
                              "message": "the index Job has failed"}]}},
  {"kind": "CachePlan", "metadata": {"namespace": "vision", "name": "imagenet"},
   "spec": {"dataset": "imagenet", "retention": "Optimal"},
   "status": {"currentRevision": "imagenet-7d4", "nodes": {"desired": 3, "active": 2},
              "jobs": [{"name": "train/images", "pass": 3, "position": 9216, "ranks": 4,
                        "rate": "812", "order": "Known"}],
              "conditions": [{"type": "Available", "status": "True"},
                             {"type": "Progressing", "status": "False"}]}}]})";
constexpr const char* kClusterPods = R"({"items": [
  {"metadata": {"name": "optcache-operator-a", "labels": {"app.kubernetes.io/component": "operator"}},
   "spec": {"nodeName": "m1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
  {"metadata": {"name": "optcache-node-x", "labels": {"app.kubernetes.io/component": "node"}},
   "spec": {"nodeName": "m1"}, "status": {"conditions": [{"type": "Ready", "status": "False"}],
                                          "containerStatuses": [{"restartCount": 2}]}}]})";
constexpr const char* kLeases =
    R"({"items": [{"spec": {"holderIdentity": "optcache-operator-a_10.0.0.7"}}]})";

TEST(ClusterView, FitsDatasetsPlansJobsAndPodsOnOneScreen) {
  const auto view =
      ReadClusterView({.resources = kClusterResources, .pods = kClusterPods, .leases = {kLeases}});
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(
      FormatClusterView(*view),
      "DATASET          READY               SAMPLES  SIZE     GRANTED   CACHED    SAVES       "
      "HIT RATIO  PREDICTED  NODES\n"
      "vision/imagenet  True                14059    127 MiB  42.0 MiB  38.1 MiB  35.0 MiB/s  "
      "30.2 %     30.0 %     2\n"
      "speech/calls     False (NotIndexed)  -        -        0 B       0 B       -           "
      "-          -          0\n"
      "\n"
      "Saved since the Datasets were made, compared with the same reads without a cache:\n"
      "DATASET          SAVED REQUESTS  SAVED BYTES  SAVED MONEY  WAITED\n"
      "vision/imagenet  870000          -2.00 KiB    8.36         41 s\n"
      "\n"
      "PLAN             DATASET   RETENTION  REVISION      AVAILABLE  ACTIVE\n"
      "vision/imagenet  imagenet  Optimal    imagenet-7d4  True       2/3\n"
      "\n"
      "JOB           DATASET          RANKS  PASS  POSITION  RATE  ORDER\n"
      "train/images  vision/imagenet  4      3     9216      812   Known\n"
      "\n"
      "MACHINE  POD                  COMPONENT        READY  RESTARTS  CACHED\n"
      "m1       optcache-node-x      node             no     2         28.6 MiB\n"
      "m1       optcache-operator-a  operator, leads  yes    0         -\n"
      "\n"
      "Dataset speech/calls: Ready is False (NotIndexed): the index Job has failed\n");
}

TEST(ClusterView, SaysWhatCouldNotBeAsked) {
  const auto view = ReadClusterView({.notes = {"pods cannot be shown: forbidden"}});
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(FormatClusterView(*view),
            "There is no Dataset; docs/user/quickstart.md shows how to make one.\n"
            "\n"
            "No training job is attached.\n"
            "\n"
            "pods cannot be shown: forbidden\n");
}

TEST(ClusterView, TellsOfAListThatIsStale) {
  const auto view = ReadClusterView(
      {.resources = R"({"items": [{"kind": "Dataset", "metadata": {"namespace": "a", "name": "b"},
                                   "status": {"conditions": [
                                     {"type": "Stale", "status": "True", "reason": "SourceChanged",
                                      "message": "a.jpg is another one"}]}}]})",
       .pods = R"({"items": []})"});
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_TRUE(FormatClusterView(*view).ends_with(
      "\nDataset a/b: Stale is True (SourceChanged): a.jpg is another one\n"))
      << FormatClusterView(*view);
}

TEST(ClusterView, ShowsADashWhereThereAreNoPrices) {
  const auto view = ReadClusterView(
      {.resources = R"({"items": [{"kind": "Dataset", "metadata": {"namespace": "a", "name": "b"},
                                   "status": {"saved": {"requests": 5, "bytes": 0}}}]})",
       .pods = R"({"items": []})"});
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_TRUE(FormatClusterView(*view).contains(
      "\na/b      5               0 B          -            0 s\n"))
      << FormatClusterView(*view);
  EXPECT_FALSE(ToJson(*view).contains("cost"));
}

TEST(ClusterView, RefusesWhatIsNoList) {
  for (const char* text : {"{}", "[]", "no JSON", R"({"items": 3})"}) {
    const auto view = ReadClusterView({.resources = text});
    ASSERT_FALSE(view) << text;
    EXPECT_EQ(view.error().code(), Code::kInvalidArgument);
  }
}

TEST(ClusterView, PrintsTheSameAsJsonAndAsYaml) {
  const auto view =
      ReadClusterView({.resources = kClusterResources, .pods = kClusterPods, .leases = {kLeases}});
  ASSERT_TRUE(view) << view.error().message();
  ExpectGolden(ToJson(*view), "cli/cluster-status.json");
  ExpectGolden(ToYaml(ToJson(*view)), "cli/cluster-status.yaml");
}

TEST(ClusterView, SaysInALineHowFarARolloutIs) {
  const auto view = [](const nlohmann::json& plan) {
    return ReadClusterView({.resources = nlohmann::json{{"items", {plan}}}.dump()}).value();
  };
  const ClusterView under_way = view(PlanIn(
      "Activate", "NodesChange", "", R"({"status": {"nodes": {"prepared": 3, "active": 1}}})"));
  const std::string line =
      "vision/imagenet: Waiting for cacheplan \"imagenet\" rollout to finish: 1 of 3 nodes follow "
      "revision "
      "93be01d7ac...\n";
  EXPECT_TRUE(FormatClusterView(under_way).contains("\n" + line)) << FormatClusterView(under_way);
  EXPECT_TRUE(ToJson(under_way).contains(R"("phase": "Activate")"));
  EXPECT_FALSE(FormatClusterView(view(CompletePlan())).contains("rollout"));
  EXPECT_FALSE(FormatClusterView(view(StoppedPlan())).contains("rollout"));
}

}  // namespace
}  // namespace optcache::cli
