#include "cli/cluster_questions.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

class ClusterQuestionsTest : public testing::Test {
 protected:
  // A kubectl that writes down its arguments, a line a call, and answers with what is in the
  // first file of `answers` whose words it was called with; else it says that this is forbidden.
  Kubectl That(const std::vector<std::pair<std::string, std::string>>& answers) {
    std::string script = "#!/bin/sh\necho \"$*\" >> " + dir_.Join("calls") + "\ncase \"$*\" in\n";
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const std::string file = "answer" + std::to_string(i);
      dir_.Write(file, answers[i].second);
      script += "*\"" + answers[i].first + "\"*) cat " + dir_.Join(file) + " ;;\n";
    }
    script += "*) echo 'Error from server (Forbidden): no' >&2; exit 1 ;;\nesac\n";
    dir_.Write("kubectl", script);
    EXPECT_EQ(::chmod(dir_.Join("kubectl").c_str(), 0700), 0);
    return Kubectl({.program = dir_.Join("kubectl")});
  }
  std::string Calls() const { return ReadFile(dir_.Join("calls"), 64_KiB).value_or(""); }

  TempDir dir_;
};

constexpr const char* kResources = R"({"items": []})";
constexpr const char* kPods = R"({"items": [
  {"metadata": {"namespace": "cache", "name": "o-1", "labels": {"app.kubernetes.io/component": "operator"}}},
  {"metadata": {"namespace": "vision", "name": "i-1", "labels": {"app.kubernetes.io/component": "index"}}}]})";

TEST_F(ClusterQuestionsTest, LooksForTheLeaderWhereOperatorsRun) {
  const auto answers =
      AskCluster(That({{"get datasets.optcache.io,", kResources},
                       {"get pods --all-namespaces", kPods},
                       {"get leases.coordination.k8s.io --namespace=cache",
                        R"({"items": [{"spec": {"holderIdentity": "o-1_10.0.0.1"}}]})"}}),
                 "");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_TRUE(answers->notes.empty());
  const auto view = ReadClusterView(*answers);
  ASSERT_TRUE(view) << view.error().message();
  ASSERT_EQ(view->pods.size(), 2U);
  EXPECT_FALSE(view->pods[0].leads);
  EXPECT_TRUE(view->pods[1].leads);
}

TEST_F(ClusterQuestionsTest, NotesWhatIsForbidden) {
  const auto answers = AskCluster(That({{"get datasets.optcache.io,", kResources}}), "");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->notes,
            std::vector<std::string>{"pods cannot be shown: Error from server (Forbidden): no"});
}

TEST_F(ClusterQuestionsTest, NeedsTheDatasetsOfOneNamespaceAtLeast) {
  const Kubectl kubectl = That({{"--namespace=vision", kResources}});
  const auto all = AskCluster(kubectl, "");
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), Code::kPermissionDenied);
  EXPECT_TRUE(all.error().message().contains("--namespace")) << all.error().message();
  const auto one = AskCluster(kubectl, "vision");
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->resources, kResources);
}

TEST_F(ClusterQuestionsTest, AsksForThePodsOwnDatasetsOneByOne) {
  const auto answers =
      AskAboutPod(That({{"get pod p", R"({"metadata": {"namespace": "vision", "name": "p",
                              "annotations": {"optcache.io/dataset": "a,shared/b,c"}}})"},
                        {"get datasets.optcache.io/a --namespace=vision", R"({"status": {}})"},
                        {"get datasets.optcache.io/b --namespace=shared", ""}}),
                  "vision", "p");
  ASSERT_TRUE(answers) << answers.error().message();
  ASSERT_EQ(answers->datasets.size(), 3U);
  EXPECT_EQ(answers->datasets[0].json, R"({"status": {}})");
  EXPECT_EQ(answers->datasets[1].json, "") << "it does not exist";
  EXPECT_EQ(answers->datasets[2].json, std::nullopt) << "it is forbidden";
  EXPECT_EQ(answers->injectors, std::nullopt);
}

TEST_F(ClusterQuestionsTest, AnAnnotationIsNoOptionOfKubectl) {
  const auto answers =
      AskAboutPod(That({{"get pod p", R"({"metadata": {"namespace": "vision", "name": "p",
                              "annotations": {"optcache.io/dataset": "--server=http://a"}}})"}}),
                  "", "p");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(Calls().find(" --server"), std::string::npos) << Calls();
}

}  // namespace
}  // namespace optcache::cli
