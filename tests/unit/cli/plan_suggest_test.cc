#include "cli/plan/plan_suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/cli/fake_kubectl.h"
#include "unit/cli/run_program.h"

namespace optcache::cli {
namespace {

using testing::HasSubstr;

TEST(WriteCapacity, ReplacesTheCapacityThatWasRead) {
  const std::vector<FakeKubectl::Rule> rules = {
      {.words = "patch datasets.optcache.io/images", .answers = {"dataset patched\n"}}};
  const FakeKubectl fake(rules);
  const kube::Json resource = kube::Json::parse(R"({
    "metadata": {"namespace": "vision", "name": "images"}, "spec": {"cache": {"capacity": "30%"}}})");
  EXPECT_EQ(WriteCapacity(fake.kubectl(), resource, "28.6%"), "dataset patched\n");
  const std::string calls = fake.Calls();
  EXPECT_TRUE(calls.contains("--namespace=vision --type=json")) << calls;
  EXPECT_TRUE(calls.contains(R"({"op":"test","path":"/spec/cache/capacity","value":"30%"})"))
      << calls;
  EXPECT_TRUE(calls.contains(R"({"op":"replace","path":"/spec/cache/capacity","value":"28.6%"})"))
      << calls;
}

constexpr const char* kPods = R"({"items": [
  {"metadata": {"namespace": "vision", "name": "a", "annotations": {"optcache.io/dataset": "images"}},
   "spec": {"initContainers": [{"name": "optcache-sidecar"}]}, "status": {"phase": "Running"}},
  {"metadata": {"namespace": "vision", "name": "not-injected", "annotations": {"optcache.io/dataset": "images"}},
   "spec": {"containers": [{"name": "training"}]}, "status": {"phase": "Running"}},
  {"metadata": {"namespace": "vision", "name": "ended", "annotations": {"optcache.io/dataset": "images"}},
   "spec": {"initContainers": [{"name": "optcache-sidecar"}]}, "status": {"phase": "Succeeded"}},
  {"metadata": {"namespace": "vision", "name": "other", "annotations": {"optcache.io/dataset": "texts"}},
   "spec": {"initContainers": [{"name": "optcache-sidecar"}]}, "status": {"phase": "Running"}}]})";
constexpr const char* kPodsOfTeam = R"({"items": [
  {"metadata": {"namespace": "team", "name": "b", "annotations": {"optcache.io/dataset": "vision/images"}},
   "spec": {"containers": [{"name": "training"}, {"name": "optcache-sidecar"}]}, "status": {"phase": "Running"}}]})";

RunningCache ReadFrom(const std::string& dataset, const std::vector<std::string>& namespaces) {
  RunningCache cache{.dataset = dataset, .jobs = {}, .price = {}};
  for (const std::string& ns : namespaces)
    cache.jobs.push_back({.name = ns + "/job/images/train", .recipe = {}});
  return cache;
}

TEST(SidecarPagesInCluster, AreThoseOfRunningPodsWithASidecarWhereJobsRead) {
  const FakeKubectl fake({{"get pods --namespace=vision", {kPods}},
                          {"get pods --namespace=team", {kPodsOfTeam}},
                          {"/api/v1/namespaces/vision/pods/a:4103/proxy/metrics", {"m 1\n"}},
                          {"/api/v1/namespaces/team/pods/b:4103/proxy/metrics", {"m 2\n"}}});
  const PagesBySidecar::value_type page_of_a = {"vision/a", ParseMetrics("m 1\n")};
  const PagesBySidecar::value_type page_of_b = {"team/b", ParseMetrics("m 2\n")};
  EXPECT_EQ(SidecarPagesInCluster(fake.kubectl(), ReadFrom("vision/images", {"vision"})),
            PagesBySidecar({page_of_a}));
  EXPECT_EQ(
      SidecarPagesInCluster(fake.kubectl(), ReadFrom("vision/images", {"vision", "team", "team"})),
      PagesBySidecar({page_of_a, page_of_b}));
  EXPECT_FALSE(fake.Calls().contains("selector")) << "an annotation may be enough";
  const auto none = SidecarPagesInCluster(fake.kubectl(), ReadFrom("vision/gone", {"vision"}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(none.error().message().ends_with("set --store-rate and --job-rate"));
}

TEST(SidecarPagesInCluster, NameTheWayWithoutRights) {
  const std::vector<FakeKubectl::Rule> lists_pods = {{"get pods --namespace=vision", {kPods}}};
  const FakeKubectl no_list(std::vector<FakeKubectl::Rule>{});
  const FakeKubectl no_page(lists_pods);
  for (const FakeKubectl* const fake : {&no_list, &no_page}) {
    const auto forbidden =
        SidecarPagesInCluster(fake->kubectl(), ReadFrom("vision/images", {"vision"}));
    ASSERT_FALSE(forbidden);
    EXPECT_EQ(forbidden.error().code(), Code::kPermissionDenied);
    EXPECT_TRUE(forbidden.error().message().ends_with("set --store-rate and --job-rate"))
        << forbidden.error().message();
  }
}

constexpr const char* kReadPlan = R"({
  "metadata": {"namespace": "vision", "name": "images"},
  "spec": {"dataset": "images", "retention": "Optimal", "objective": "Bytes", "goal": {"waiting": "2%"}},
  "status": {"jobs": [
    {"name": "vision/a/images/train", "position": 0, "length": 1000, "ranks": 1, "rate": "100.0", "order": "Known",
     "recipe": "torch-distributed size=1000 seed=3 world=1", "epoch": 1, "epochStep": 1}]}})";
constexpr const char* kReadDataset = R"({
  "metadata": {"namespace": "vision", "name": "images"}, "spec": {"cache": {"capacity": "80%"}},
  "status": {"manifestDigest": "8b1f", "samples": 1000, "bytes": 100000,
             "capacity": {"granted": 80000, "maximum": 80000}, "nodes": [{"name": "m1"}]}})";

std::vector<FakeKubectl::Rule> RulesOfReadPlan() {
  return {{.words = "get cacheplans.optcache.io/images", .answers = {kReadPlan}},
          {.words = "get datasets.optcache.io/images", .answers = {kReadDataset}},
          {.words = "patch datasets.optcache.io/images", .answers = {"patched\n"}}};
}

Ended Suggest(const FakeKubectl& fake, const std::string& words) {
  const KubectlInPath path(fake);
  return RunAsPlugin("plan suggest " + words);
}

constexpr const char* kRatesGiven = " --store-rate 700Ki --job-rate 1Mi";

TEST(PlanSuggest, FindsTheCapacityForTheGoalOfTheCachePlan) {
  const FakeKubectl fake(RulesOfReadPlan());
  const Ended ended = Suggest(fake, std::string("images -n vision -o json") + kRatesGiven);
  ASSERT_EQ(ended.status, 0) << ended.err;
  const auto answer = nlohmann::json::parse(ended.out);
  EXPECT_EQ(answer.at("dataset"), "vision/images");
  EXPECT_DOUBLE_EQ(answer.at("goal").at("waiting").get<double>(), 0.02);
  const double capacity = answer.at("policies").at("optimal").at("capacity").get<double>();
  EXPECT_NEAR(capacity, 0.3, 0.05) << "what the store does not send";
  EXPECT_DOUBLE_EQ(answer.at("now").at("capacity").get<double>(), 0.8);
  EXPECT_EQ(fake.Writes(), "") << "nothing is changed unasked";
}

TEST(PlanSuggest, WritesWhatItHasFoundIfItIsToldTo) {
  const FakeKubectl fake(RulesOfReadPlan());
  const Ended ended = Suggest(fake, std::string("images --apply --yes") + kRatesGiven);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("cache.capacity of the Dataset vision/images: 80% -> "));
  EXPECT_THAT(fake.Writes(),
              HasSubstr(R"({"op":"test","path":"/spec/cache/capacity","value":"80%"})"));
}

// The page of the sidecar of the pod `a`, before and after; its worker has spent that time.
std::vector<FakeKubectl::Rule> RulesOfMeasuring(int waiting, int working, int idle) {
  const auto page = [](int read, int waited, int worked, int rested) {
    const std::string time = "optcache_client_process_seconds_total{process=\"worker\",state=";
    return "optcache_loaders_attached 1\n"
           "optcache_store_bandwidth_bytes{dataset=\"vision/images\"} 1000\n"
           "optcache_client_sample_bytes_total{dataset=\"vision/images\"} " +
           std::to_string(read) + "\n" + time + "\"waiting\"} " + std::to_string(waited) + "\n" +
           time + "\"working\"} " + std::to_string(worked) + "\n" + time + "\"idle\"} " +
           std::to_string(rested) + "\n";
  };
  std::vector<FakeKubectl::Rule> rules = RulesOfReadPlan();
  rules.push_back({.words = "get pods --namespace=vision", .answers = {kPods}});
  rules.push_back({.words = "/api/v1/namespaces/vision/pods/a:4103/proxy/metrics",
                   .answers = {page(0, 0, 0, 0), page(100, waiting, working, idle)}});
  return rules;
}

TEST(PlanSuggest, MeasuresJobsWhoseWorkersHardlyWait) {
  for (const auto& [waiting, working, idle, said] :
       {std::tuple(4, 92, 4, "waited 4.0 % of the time at most"),
        std::tuple(50, 10, 40, "waited 0.0 % of the time at most")}) {
    const FakeKubectl fake(RulesOfMeasuring(waiting, working, idle));
    const Ended ended = Suggest(fake, "images --measure 1ms");
    EXPECT_EQ(ended.status, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(said));
  }
}

TEST(PlanSuggest, DoesNotGuessHowFastJobsReadThatWait) {
  const FakeKubectl fake(RulesOfMeasuring(50, 50, 0));
  const Ended ended = Suggest(fake, "images --measure 1ms");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("the jobs wait for samples, up to 50.0 % of the time"));
  EXPECT_THAT(ended.err, HasSubstr("optcache headspace"));
}

TEST(PlanSuggest, SaysThatOptcacheIsNotInstalled) {
  const std::string missing = "Error: the server doesn't have a resource type";
  std::vector<FakeKubectl::Rule> no_datasets = RulesOfReadPlan();
  no_datasets[1].answers = {missing};
  const FakeKubectl bare(std::vector<FakeKubectl::Rule>{{.words = "get", .answers = {missing}}});
  for (const Ended& ended : {Suggest(bare, "images"), Suggest(bare, "-n vision"),
                             Suggest(FakeKubectl(no_datasets), "images")}) {
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(ended.err, HasSubstr("optcache is not installed in this cluster"));
  }
}

TEST(PlanSuggest, OnOneMachineWritesNothing) {
  const Ended ended = RunAs("optcache", "plan suggest images --until waiting=2% --apply --yes");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.err, HasSubstr("`optcache up` reads its capacity when it starts"));
}

}  // namespace
}  // namespace optcache::cli
