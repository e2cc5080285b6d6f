#include "cli/explain/pod_questions.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {
namespace {

// A pod `p` with that annotation.
std::string PodOf(const std::string& datasets) {
  return R"({"metadata": {"namespace": "vision", "name": "p",
             "annotations": {"optcache.io/dataset": ")" +
         datasets + R"("}}})";
}

TEST(AskAboutPod, AsksForItsOwnDatasetsOneByOne) {
  const FakeKubectl fake({{"get pod p", {PodOf("a,shared/b,c")}},
                          {"get datasets.optcache.io/a --namespace=vision", {R"({"status": {}})"}},
                          {"get datasets.optcache.io/b --namespace=shared", {""}}});
  const auto answers = AskAboutPod(fake.kubectl(), "vision", "p");
  ASSERT_TRUE(answers) << answers.error().message();
  ASSERT_EQ(answers->datasets.size(), 3U);
  EXPECT_EQ(answers->datasets[0].json, R"({"status": {}})");
  EXPECT_EQ(answers->datasets[1].json, "") << "it does not exist";
  EXPECT_EQ(answers->datasets[2].json, std::nullopt) << "it is forbidden";
  EXPECT_EQ(answers->injectors, std::nullopt);
}

TEST(AskAboutPod, SaysThatOptcacheIsNotInstalled) {
  for (const char* datasets : {"imagenet", ""}) {
    const FakeKubectl fake(
        {{"get pod p", {PodOf(datasets)}},
         {"get datasets", {"Error: the server doesn't have a resource type \"datasets\""}}});
    const auto answers = AskAboutPod(fake.kubectl(), "vision", "p");
    ASSERT_FALSE(answers) << datasets;
    EXPECT_EQ(answers.error().code(), Code::kNotFound);
    EXPECT_TRUE(answers.error().message().contains("not installed in this cluster"))
        << answers.error().message();
  }
}

TEST(AskAboutPod, ThatNamesNoDatasetNeedsNoRightsToThem) {
  const FakeKubectl fake({FakeKubectl::Rule{"get pod p", {PodOf("")}}});
  const auto answers = AskAboutPod(fake.kubectl(), "vision", "p");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_TRUE(answers->datasets.empty());
}

TEST(AskAboutPod, AnAnnotationIsNoOptionOfKubectl) {
  const FakeKubectl fake({FakeKubectl::Rule{"get pod p", {PodOf("--server=http://a")}}});
  const auto answers = AskAboutPod(fake.kubectl(), "", "p");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(fake.Calls().find(" --server"), std::string::npos) << fake.Calls();
}

}  // namespace
}  // namespace optcache::cli
