#include "cli/status/status_questions.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {
namespace {

constexpr const char* kResources = R"({"items": []})";
constexpr const char* kPods = R"({"items": [
  {"metadata": {"namespace": "cache", "name": "o-1", "labels": {"app.kubernetes.io/component": "operator"}}},
  {"metadata": {"namespace": "vision", "name": "i-1", "labels": {"app.kubernetes.io/component": "index"}}}]})";

TEST(AskCluster, LooksForTheLeaderWhereOperatorsRun) {
  const FakeKubectl fake({{"get datasets.optcache.io,", {kResources}},
                          {"get pods --all-namespaces", {kPods}},
                          {"get leases.coordination.k8s.io --namespace=cache",
                           {R"({"items": [{"spec": {"holderIdentity": "o-1_10.0.0.1"}}]})"}}});
  const auto answers = AskCluster(fake.kubectl(), "");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_TRUE(answers->notes.empty());
  const auto view = ReadClusterView(*answers);
  ASSERT_TRUE(view) << view.error().message();
  ASSERT_EQ(view->pods.size(), 2U);
  EXPECT_FALSE(view->pods[0].leads);
  EXPECT_TRUE(view->pods[1].leads);
}

TEST(AskCluster, NotesWhatIsForbidden) {
  const FakeKubectl fake({FakeKubectl::Rule{"get datasets.optcache.io,", {kResources}}});
  const auto answers = AskCluster(fake.kubectl(), "");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->notes,
            std::vector<std::string>{"pods cannot be shown: Error from server (Forbidden): no"});
}

TEST(AskCluster, NeedsTheDatasetsOfOneNamespaceAtLeast) {
  const FakeKubectl fake({FakeKubectl::Rule{"--namespace=vision", {kResources}}});
  const auto all = AskCluster(fake.kubectl(), "");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(all.error().message().contains("--namespace")) << all.error().message();
  const auto one = AskCluster(fake.kubectl(), "vision");
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->resources, kResources);
}

}  // namespace
}  // namespace optcache::cli
