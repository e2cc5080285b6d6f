#include "cli/plan_suggest.h"

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
   "status": {"phase": "Running"}},
  {"metadata": {"namespace": "vision", "name": "ended", "annotations": {"optcache.io/dataset": "images"}},
   "status": {"phase": "Succeeded"}},
  {"metadata": {"namespace": "vision", "name": "other", "annotations": {"optcache.io/dataset": "texts"}},
   "status": {"phase": "Running"}}]})";

TEST(SidecarPagesInCluster, AreThoseOfRunningPodsOfTheDataset) {
  const FakeKubectl fake(
      {{"get pods", {kPods}}, {"/api/v1/namespaces/vision/pods/a:4103/proxy/metrics", {"m 1\n"}}});
  EXPECT_EQ(SidecarPagesInCluster(fake.kubectl(), "vision/images"), "m 1\n\n");
  const auto none = SidecarPagesInCluster(fake.kubectl(), "vision/gone");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(none.error().message().ends_with("set --store-rate and --job-rate"));
}

}  // namespace
}  // namespace optcache::cli
