#include "cli/explain/explain_questions.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDataset = R"({"metadata": {"namespace": "vision", "name": "imagenet"}})";
using Rules = std::vector<FakeKubectl::Rule>;  // of one rule, a list in braces is ambiguous

constexpr const char* kNothing = R"({"items": []})";

KubectlOptions OptionsOf(const FakeKubectl& fake) {
  return {.program = fake.folder() + "/kubectl"};
}

bool NoWait(Duration /*time*/) {
  return true;
}

std::string AboutOf(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += finding.about + ": " + finding.what + " | " + finding.to_do + "\n";
  return text;
}

TEST(AskAboutDataset, AsksForWhatTheStoryNeeds) {
  const FakeKubectl fake(
      {{.words = "get datasets.optcache.io/imagenet --namespace=vision", .answers = {kDataset}},
       {.words = "get cacheplans.optcache.io", .answers = {kNothing}},
       {.words = "get warmups.optcache.io", .answers = {kNothing}},
       {.words = "get pods --all-namespaces", .answers = {kNothing}},
       {.words = "get events", .answers = {kNothing}}});
  const auto answers = AskAboutDataset(OptionsOf(fake), "vision", "imagenet");
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->dataset, kDataset);
  EXPECT_TRUE(answers->plans && answers->warmups && answers->node_pods && answers->events);
  EXPECT_EQ(AboutOf(answers->unseen), "");
  EXPECT_EQ(fake.Writes(), "");
}

TEST(AskAboutDataset, NamesTheRightsThatAreMissing) {
  const FakeKubectl fake(
      Rules{{.words = "get datasets.optcache.io/imagenet", .answers = {kDataset}}});
  const auto answers = AskAboutDataset(OptionsOf(fake), "vision", "imagenet");
  ASSERT_TRUE(answers) << answers.error().message();
  const std::string unseen = AboutOf(answers->unseen);
  for (const char* right :
       {"list cacheplans.optcache.io -n vision", "list warmups.optcache.io -n vision",
        "list pods -A", "list events -n vision"})
    EXPECT_THAT(unseen, HasSubstr(std::string("kubectl auth can-i ") + right));
  EXPECT_FALSE(answers->plans);
}

TEST(AskAboutDataset, NamesTheRightToSeeTheDatasetItself) {
  const auto answers = AskAboutDataset(OptionsOf(FakeKubectl({})), "vision", "imagenet");
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code(), Code::kPermissionDenied);
  EXPECT_THAT(answers.error().message(),
              HasSubstr("kubectl auth can-i get datasets.optcache.io -n vision"));
}

TEST(AskAboutDataset, ThatDoesNotExistNamesThoseThatDo) {
  const FakeKubectl fake(
      {{.words = "get datasets.optcache.io/", .answers = {""}},
       {.words = "get datasets.optcache.io --all-namespaces",
        .answers = {R"({"items": [{"metadata": {"namespace": "vision", "name": "imagenet"}},
                                  {"metadata": {"namespace": "vision", "name": "coco"}},
                                  {"metadata": {"namespace": "speech", "name": "words"}}]})"}}});
  const auto message = [&](const char* ns, const char* name) {
    const auto answers = AskAboutDataset(OptionsOf(fake), ns, name);
    EXPECT_FALSE(answers);
    EXPECT_EQ(answers.error().code(), Code::kNotFound);
    return answers.error().message();
  };
  EXPECT_EQ(message("vision", "imagnet"),
            "there is no Dataset imagnet in namespace vision; there are: coco, imagenet");
  EXPECT_EQ(
      message("vision", "words"),
      "there is no Dataset words in namespace vision, but in namespace speech: add -n speech");
  EXPECT_EQ(message("empty", "x"),
            "there is no Dataset x in namespace empty; this namespace has no Dataset");
}

TEST(AskAboutDataset, SaysThatOptcacheIsNotInstalled) {
  const FakeKubectl fake(Rules{
      {.words = "get datasets", .answers = {"Error: the server doesn't have a resource type"}}});
  const auto answers = AskAboutDataset(OptionsOf(fake), "vision", "imagenet");
  ASSERT_FALSE(answers);
  EXPECT_THAT(answers.error().message(), HasSubstr("optcache is not installed"));
}

TEST(AskAboutDataset, ItsNamespaceIsThatOfTheContext) {
  const FakeKubectl fake(
      {{.words = "config view --minify", .answers = {"team"}},
       {.words = "get datasets.optcache.io/imagenet --namespace=team", .answers = {kDataset}}});
  EXPECT_TRUE(AskAboutDataset(OptionsOf(fake), "", "imagenet"));
  const FakeKubectl none(Rules{
      {.words = "get datasets.optcache.io/imagenet --namespace=default", .answers = {kDataset}}});
  EXPECT_TRUE(AskAboutDataset(OptionsOf(none), "", "imagenet"));
}

TEST(AskAboutDataset, ANameIsNoOptionOfKubectl) {
  const FakeKubectl fake({});
  EXPECT_EQ(AskAboutDataset(OptionsOf(fake), "vision", "--all").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(AskAboutDataset(OptionsOf(fake), "--all", "imagenet").error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(fake.Calls(), "");
}

std::string PodNamed(const std::string& name, const std::string& job) {
  return R"({"metadata": {"namespace": "vision", "name": ")" + name +
         R"(", "labels": {"job-name": ")" + job +
         R"("}, "annotations": {"optcache.io/dataset": "imagenet"}},
           "spec": {"initContainers": [{"name": "optcache-sidecar",
                    "env": [{"name": "OPTCACHE_OWNER", "value": ")" +
         job + R"("}]}]},
           "status": {"phase": "Running"}})";
}

std::string PodsOf(const std::string& job, int count) {
  std::string list = R"({"items": [)";
  for (int i = 0; i < count; ++i)
    list += (i > 0 ? "," : "") + PodNamed(job + "-" + std::to_string(i), job);
  return list + "]}";
}

Rules RulesOfJob(const std::string& pods) {
  return {{.words = "get jobs.batch/train", .answers = {R"({"spec": {}})"}},
          {.words = "labelSelector=job-name%3Dtrain", .answers = {pods}},
          {.words = "labelSelector=", .answers = {kNothing}},
          {.words = "get datasets.optcache.io/imagenet", .answers = {kDataset}},
          {.words = "get pods --all-namespaces", .answers = {kNothing}},
          {.words = "get mutatingwebhookconfigurations", .answers = {kNothing}},
          {.words = "proxy/metrics", .answers = {"a 1\n", "a 2\n"}},
          {.words = "get cacheplans.optcache.io", .answers = {kNothing}},
          {.words = "get events", .answers = {kNothing}}};
}

Result<JobAnswers> AskAboutTrain(const FakeKubectl& fake, const Wait& wait = NoWait) {
  return AskAboutJob(OptionsOf(fake), "vision", "train", std::chrono::seconds(2), wait);
}

TEST(AskAboutJob, LooksAtThePagesOfItsPodsTwice) {
  const FakeKubectl fake(RulesOfJob(PodsOf("train", 1)));
  Duration waited{};
  const auto answers = AskAboutTrain(fake, [&](Duration time) {
    waited = time;
    return true;
  });
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(waited, std::chrono::seconds(2));
  ASSERT_EQ(answers->pods.size(), 1U);
  EXPECT_EQ(answers->pods[0].metrics, "a 2\n");
  EXPECT_EQ(answers->pods[0].datasets.at(0).json, kDataset);
  ASSERT_EQ(answers->pages.size(), 1U);
  EXPECT_EQ(SumOf(answers->pages[0].before, "a"), 1);
  EXPECT_EQ(SumOf(answers->pages[0].after, "a"), 2);
  EXPECT_EQ(AboutOf(answers->unseen), "");
  EXPECT_EQ(fake.Writes(), "");
}

TEST(AskAboutJob, TellsOfAsManyPodsAsItMayAndCountsTheRest) {
  const FakeKubectl fake(RulesOfJob(PodsOf("train", 70)));
  const auto answers = AskAboutTrain(fake);
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->pods.size(), kMaxPodsTold);
  EXPECT_EQ(answers->more_pods, 6U);
  EXPECT_EQ(answers->pages.size(), kMaxPagesAsked);
  EXPECT_THAT(AboutOf(answers->unseen), HasSubstr("the pages of 16 of 64 sidecars were looked at"));
  const std::string calls = fake.Calls();
  EXPECT_EQ(calls.find("get datasets.optcache.io/imagenet"),
            calls.rfind("get datasets.optcache.io/imagenet"))
      << "once for all pods";
}

TEST(AskAboutJob, LooksFirstAtPodsThatHaveNotEnded) {
  nlohmann::json pods = nlohmann::json::parse(PodsOf("train", 70));
  for (std::size_t i = 0; i < 68; ++i)
    pods["items"][i]["status"]["phase"] = i % 2 == 0 ? "Failed" : "Succeeded";
  const auto answers = AskAboutTrain(FakeKubectl(RulesOfJob(pods.dump())));
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->pods.size(), kMaxPodsTold);
  EXPECT_THAT(answers->pods[0].pod, HasSubstr("\"train-68\""));
  EXPECT_THAT(answers->pods[1].pod, HasSubstr("\"train-69\""));
  EXPECT_EQ(answers->pages.size(), 2U);
}

TEST(AskAboutJob, PagesThatCannotBeHadAreCounted) {
  Rules rules = RulesOfJob(PodsOf("train", 2));
  std::erase_if(rules, [](const auto& rule) { return rule.words == "proxy/metrics"; });
  const auto answers = AskAboutTrain(FakeKubectl(rules));
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->silent_pages, 2U);
  EXPECT_TRUE(answers->pages.empty());
}

TEST(AskAboutJob, ThatNoLabelSelectsIsLookedForPageByPage) {
  const std::string first =
      R"({"metadata": {"continue": "abc"}, "items": [)" + PodNamed("x", "x") + "]}";
  Rules rules = RulesOfJob(kNothing);
  rules.insert(rules.begin() + 3,
               {{.words = "limit=500&continue=abc", .answers = {PodsOf("train", 2)}},
                {.words = "pods?limit=500", .answers = {first}}});
  const auto answers = AskAboutTrain(FakeKubectl(rules));
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_EQ(answers->pods.size(), 2U);
}

TEST(AskAboutJob, IsLookedForByTheLabelsOfOtherControllers) {
  for (const char* label : {"batch.kubernetes.io%2Fjob-name", "jobset.sigs.k8s.io%2Fjobset-name",
                            "leaderworkerset.sigs.k8s.io%2Fname",
                            "training.kubeflow.org%2Fjob-name", "ray.io%2Fcluster"}) {
    Rules rules = RulesOfJob(kNothing);
    rules.insert(rules.begin(), {.words = "labelSelector=" + std::string(label) + "%3Dtrain",
                                 .answers = {PodsOf("train", 2)}});
    const FakeKubectl fake(rules);
    const auto answers = AskAboutTrain(fake);
    ASSERT_TRUE(answers) << answers.error().message();
    EXPECT_EQ(answers->pods.size(), 2U) << label;
    EXPECT_TRUE(answers->has_all_pods);
    EXPECT_THAT(fake.Calls(), Not(HasSubstr("pods?limit=500\n"))) << "not all of the namespace";
  }
}

TEST(AskAboutJob, OfANamespaceWithTooManyPodsItSaysSo) {
  Rules rules = RulesOfJob(kNothing);
  rules.insert(rules.begin() + 3,
               {.words = "pods?limit=500",
                .answers = {R"({"metadata": {"continue": "abc"}, "items": []})"}});
  const FakeKubectl fake(rules);
  const auto answers = AskAboutTrain(fake);
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_THAT(AboutOf(answers->unseen),
              HasSubstr("only the first 2000 pods of namespace vision were looked at"));
}

TEST(AskAboutJob, ThatDoesNotExistNamesThoseThatDo) {
  const FakeKubectl fake({{.words = "get jobs.batch/train", .answers = {""}},
                          {.words = "labelSelector", .answers = {kNothing}},
                          {.words = "pods?limit=500", .answers = {PodsOf("other", 1)}},
                          {.words = "get cacheplans", .answers = {kNothing}}});
  const auto answers = AskAboutTrain(fake);
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().code(), Code::kNotFound);
  EXPECT_EQ(answers.error().message(),
            "there is no job train in namespace vision: no Job of that name, no pod of it and no "
            "stream; there are pods of: other");
}

TEST(AskAboutJob, WithoutAPodMayStillHaveAStream) {
  const auto asked = [](const char* stream) {
    return AskAboutTrain(FakeKubectl({{.words = "get jobs.batch/train", .answers = {""}},
                                      {.words = "pods?limit=500", .answers = {kNothing}},
                                      {.words = "get cacheplans",
                                       .answers = {R"({"items":[{"status":{"jobs":[{"name":")" +
                                                   std::string(stream) + R"("}]}}]})"}}}));
  };
  EXPECT_TRUE(asked("vision/train.1a2b3c4d/imagenet/loader"));
  EXPECT_TRUE(asked("vision/train/imagenet/loader"));
  EXPECT_FALSE(asked("vision/train-2/imagenet/loader"));
}

TEST(AskAboutJob, SaysThatOptcacheIsNotInstalled) {
  for (const std::string& pods : {PodsOf("train", 1), std::string(kNothing)}) {
    Rules rules = RulesOfJob(pods);
    rules.push_back({.words = "pods?limit=500", .answers = {kNothing}});
    for (FakeKubectl::Rule& rule : rules) {
      if (rule.words.contains("optcache.io"))
        rule.answers = {"Error: the server doesn't have a resource type"};
    }
    const auto answers = AskAboutTrain(FakeKubectl(rules));
    ASSERT_FALSE(answers);
    EXPECT_EQ(answers.error().code(), Code::kNotFound);
    EXPECT_THAT(answers.error().message(), HasSubstr("optcache is not installed"));
  }
}

TEST(AskAboutJob, NamesTheRightToListPods) {
  const auto answers =
      AskAboutTrain(FakeKubectl(Rules{{.words = "get jobs.batch/train", .answers = {""}}}));
  ASSERT_TRUE(answers) << answers.error().message();
  EXPECT_FALSE(answers->has_all_pods);
  EXPECT_THAT(AboutOf(answers->unseen), HasSubstr("kubectl auth can-i list pods -n vision"));
  EXPECT_THAT(AboutOf(answers->unseen), Not(HasSubstr("mutatingwebhook"))) << "not asked for";
}

}  // namespace
}  // namespace optcache::cli
