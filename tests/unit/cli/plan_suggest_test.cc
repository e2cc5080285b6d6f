#include "cli/plan/plan_suggest.h"

#include <gtest/gtest.h>

#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {
namespace {

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
  EXPECT_EQ(SidecarPagesInCluster(fake.kubectl(), ReadFrom("vision/images", {"vision"})),
            "m 1\n\n");
  EXPECT_EQ(
      SidecarPagesInCluster(fake.kubectl(), ReadFrom("vision/images", {"vision", "team", "team"})),
      "m 2\n\nm 1\n\n");
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

}  // namespace
}  // namespace optcache::cli
