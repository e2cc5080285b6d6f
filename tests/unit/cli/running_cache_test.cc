#include "cli/local/running_cache.h"

#include <gtest/gtest.h>

#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

constexpr const char* kRecipe = "torch-distributed size=1000 seed=3 world=2";

coordination::ClusterStatus ServedStatus() {
  coordination::ClusterStatus status;
  status.datasets = {
      {.name = "vision/images",
       .manifest_digest = "8b1f",
       .retention = coordination::Retention::kPin,
       .objective = coordination::Objective::kRequests,
       .total_samples = 1000,
       .total_bytes = 50'000,
       .capacity = 15'000,
       .streams = {{.name = "vision/a/images/train",
                    .pass = 1,
                    .position = 400,
                    .length = 1000,
                    .world = 2,
                    .ranks = 2,
                    .recipe = kRecipe,
                    .epoch = 31,
                    .epoch_step = 1,
                    .rate = 120.5},
                   {.name = "vision/gone/images/train", .ranks = 1, .ranks_lost = 1}},
       .nodes = {{.name = "m1"}, {.name = "m2"}, {.name = "m3"}}}};
  return status;
}

kube::Json PlanJson() {
  return kube::Json::parse(R"({
    "metadata": {"namespace": "vision", "name": "images"},
    "spec": {"dataset": "images", "retention": "Pin", "objective": "Requests", "goal": {"waiting": "2%"}},
    "status": {"jobs": [
      {"name": "vision/a/images/train", "pass": 1, "position": 400, "length": 1000, "ranks": 2, "rate": "120.5",
       "order": "Known", "recipe": "torch-distributed size=1000 seed=3 world=2", "epoch": 31, "epochStep": 1},
      {"name": "vision/gone/images/train", "ranks": 0, "rate": "80.0", "order": "Known",
       "recipe": "torch-random size=1000", "epoch": 2, "epochStep": 1}]}})");
}

kube::Json DatasetJson() {
  return kube::Json::parse(R"({
    "metadata": {"namespace": "vision", "name": "images"},
    "spec": {"cost": {"perRequest": "0.0000004", "perGiB": 2}},
    "status": {"manifestDigest": "8b1f", "samples": 1000, "bytes": 50000, "capacity": {"granted": 15000, "maximum": 20000},
               "nodes": [{"name": "m1"}, {"name": "m2"}, {"name": "m3"}]}})");
}

void ExpectServed(const Result<RunningCache>& cache) {
  ASSERT_TRUE(cache) << cache.error().message();
  EXPECT_EQ(cache->dataset, "vision/images");
  EXPECT_EQ(cache->manifest_digest, "8b1f");
  EXPECT_EQ(cache->samples, 1000U);
  EXPECT_EQ(cache->bytes, 50'000U);
  EXPECT_EQ(cache->capacity, 15'000U);
  EXPECT_EQ(cache->nodes, 3U);
  EXPECT_EQ(cache->retention, coordination::Retention::kPin);
  EXPECT_EQ(cache->objective, coordination::Objective::kRequests);
  const RunningJob job{.name = "vision/a/images/train",
                       .recipe = *sampler::ParseRecipe(kRecipe),
                       .epoch = 31,
                       .epoch_step = 1,
                       .position = 400,
                       .length = 1000,
                       .rate = 120.5};
  EXPECT_EQ(cache->jobs, std::vector<RunningJob>{job}) << "without the job that has gone";
}

TEST(RunningCache, IsReadFromACoordinatorsStatus) {
  for (const char* const name : {"", "images", "vision/images"})
    ExpectServed(RunningCacheOf(ServedStatus(), name));
  const Status other = RunningCacheOf(ServedStatus(), "mages").error();
  EXPECT_EQ(other.code(), Code::kNotFound);
  EXPECT_EQ(other.message(), "there is no dataset mages; there are: vision/images");
  coordination::ClusterStatus two = ServedStatus();
  two.datasets.push_back({.name = "vision/others"});
  EXPECT_EQ(RunningCacheOf(two, "").error().message(),
            "name one of the datasets that are there: vision/images, vision/others");
  two.datasets.back().name = "audio/images";
  EXPECT_EQ(
      RunningCacheOf(two, "images").error(),
      Status(Code::kInvalidArgument,
             "several datasets have the name images: vision/images, audio/images. Write one with "
             "its namespace, for example vision/images"));
}

TEST(RunningCache, IsReadFromACachePlanAndItsDataset) {
  const auto cache = RunningCacheOf(PlanJson(), DatasetJson());
  ExpectServed(cache);
  EXPECT_EQ(cache->maximum, 20'000U);
  EXPECT_EQ(cache->price, (dataset::StorePrice{.per_request = 0.0000004, .per_gib = 2}));
  EXPECT_EQ(cache->goal, *dataset::ParseWaitingGoal("2%"));
  kube::Json huge = DatasetJson();
  huge["status"]["samples"] = 1LL << 40;
  EXPECT_EQ(RunningCacheOf(PlanJson(), huge)->samples, kNoSample) << "more cannot be";
  kube::Json plan = PlanJson();
  plan["spec"]["goal"] = {{"cost", "12.5"}};
  EXPECT_EQ(RunningCacheOf(plan, DatasetJson())->goal, *dataset::ParseCostGoal("12.5"));
  plan["spec"].erase("goal");
  EXPECT_EQ(RunningCacheOf(plan, DatasetJson())->goal, std::nullopt);
}

TEST(RunningCache, RefusesAJobThatReadsAnEarlierManifest) {
  const std::string why =
      "vision/a/images/train reads another list of samples than vision/images has now: start it "
      "again";
  coordination::ClusterStatus status = ServedStatus();
  status.retiring = {status.datasets[0]};
  EXPECT_EQ(RunningCacheOf(status, "").error(), Status(Code::kInvalidArgument, why));
  status.retiring[0].streams[0].ranks_lost = 2;
  ExpectServed(RunningCacheOf(status, ""));
  kube::Json plan = PlanJson();
  plan["status"]["jobs"][0]["earlierManifest"] = true;
  EXPECT_EQ(RunningCacheOf(plan, DatasetJson()).error(), Status(Code::kInvalidArgument, why));
}

TEST(RunningCache, SaysWhyItCannotBeSimulated) {
  const auto error_of = [](auto change) {
    coordination::ClusterStatus status = ServedStatus();
    change(status.datasets[0]);
    return RunningCacheOf(status, "").error();
  };
  const Status none = error_of([](auto& dataset) { dataset.streams[0].ranks_lost = 2; });
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_TRUE(none.message().starts_with("no training job reads vision/images now"));
  const Status unknown = error_of([](auto& dataset) { dataset.streams[0].recipe.clear(); });
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_TRUE(unknown.message().starts_with(
      "the order of vision/a/images/train is not known ahead, or its recipe is too long"));
  EXPECT_EQ(error_of([](auto& dataset) { dataset.streams[0].recipe = "?"; }).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(error_of([](auto& dataset) { dataset.total_samples = 0; }).code(), Code::kUnavailable);
  EXPECT_EQ(error_of([](auto& dataset) { dataset.nodes.clear(); }).code(), Code::kUnavailable);
  EXPECT_TRUE(error_of([](auto& dataset) { dataset.total_samples = 999; })
                  .message()
                  .contains("another list of samples"));
}

}  // namespace
}  // namespace optcache::cli
