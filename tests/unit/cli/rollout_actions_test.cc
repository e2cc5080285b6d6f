#include "cli/rollout/rollout_actions.h"

#include <gtest/gtest.h>

#include "cli/cluster/plan_questions.h"
#include "unit/cli/fake_kubectl.h"
#include "unit/cli/plan_examples.h"

namespace optcache::cli {
namespace {

constexpr const char* kGetPlan = "get cacheplans.optcache.io/imagenet";

PlanResource ReadExample(const nlohmann::json& json) {
  return ReadPlanResource(json.dump()).value();
}

std::vector<FakeKubectl::Rule> ActionRules() {
  return {
      {.words = "patch cacheplans.optcache.io/imagenet --namespace=vision --type=merge --patch=",
       .answers = {"patched"}},
      {.words = "get controllerrevisions.apps --output=json --namespace=vision "
                "--selector=optcache.io/cacheplan=imagenet",
       .answers = {kRevisions}}};
}

TEST(RolloutActions, PausesAndResumesInKubectlsWords) {
  const FakeKubectl fake(ActionRules());
  const PlanResource runs = ReadExample(PlanAsJson());
  const PlanResource paused = ReadExample(PlanAsJson(R"({"spec": {"rollout": {"paused": true}}})"));
  EXPECT_EQ(PauseRollout(fake.kubectl(), runs).value(), "cacheplan.optcache.io/imagenet paused\n");
  EXPECT_TRUE(fake.Writes().ends_with(R"(--patch={"spec":{"rollout":{"paused":true}}})"
                                      "\n"))
      << fake.Writes();
  EXPECT_EQ(ResumeRollout(fake.kubectl(), paused).value(),
            "cacheplan.optcache.io/imagenet resumed\n");
  EXPECT_TRUE(fake.Writes().ends_with(R"(--patch={"spec":{"rollout":{"paused":false}}})"
                                      "\n"));
  EXPECT_EQ(PauseRollout(fake.kubectl(), paused).error().message(),
            "cacheplans.optcache.io \"imagenet\" is already paused");
  EXPECT_EQ(ResumeRollout(fake.kubectl(), runs).error().message(),
            "cacheplans.optcache.io \"imagenet\" is not paused");
}

TEST(RolloutActions, UndoWritesTheContentOfTheRevisionAndItsCause) {
  const FakeKubectl fake(ActionRules());
  EXPECT_EQ(UndoRollout(fake.kubectl(), ReadExample(PlanAsJson()), 0).value(),
            "cacheplan.optcache.io/imagenet rolled back\n");
  EXPECT_TRUE(fake.Writes().ends_with(
      R"(--patch={"metadata":{"annotations":{"kubernetes.io/change-cause":"what came first stays"}},)"
      R"("spec":{"jobs":[],"objective":"Bytes","retention":"Pin"}})"
      "\n"))
      << fake.Writes();
  EXPECT_TRUE(UndoRollout(fake.kubectl(), ReadExample(PlanAsJson()), 1));
  EXPECT_TRUE(fake.Writes().contains(R"("kubernetes.io/change-cause":null)"));
}

TEST(RolloutActions, UndoSkipsRefusesAndSaysWhatThereIs) {
  const FakeKubectl fake(ActionRules());
  EXPECT_EQ(UndoRollout(fake.kubectl(), ReadExample(PlanAsJson()), 4).value(),
            "cacheplan.optcache.io/imagenet skipped rollback (current template already matches "
            "revision 4)\n");
  const auto none = UndoRollout(fake.kubectl(), ReadExample(PlanAsJson()), 2);
  EXPECT_EQ(none.error().message(),
            "unable to find specified revision 2 in history: there are 1, 3, 4");
  EXPECT_EQ(fake.Writes(), "");
}

TEST(RolloutActions, UndoOfWhatIsPausedGoesBackToTheRevisionInForceAlone) {
  const FakeKubectl fake(ActionRules());
  const PlanResource paused = ReadExample(PlanAsJson(R"({"spec": {"rollout": {"paused": true}}})"));
  const auto other = UndoRollout(fake.kubectl(), paused, 1);
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().message().contains("cannot rollback a paused")) << "as kubectl";
  EXPECT_EQ(fake.Writes(), "");
  EXPECT_EQ(UndoRollout(fake.kubectl(), paused, 0).value(),
            "cacheplan.optcache.io/imagenet rolled back\n");
  EXPECT_TRUE(fake.Writes().contains(R"("retention":"Pin")")) << fake.Writes();
}

TEST(RolloutActions, RestartSaysThatNothingIsToBeRestarted) {
  const FakeKubectl fake(ActionRules());
  for (const char* phase : {"Prepare", "Activate", "Observe", "GoBack"}) {
    const auto restarted = RestartRollout(fake.kubectl(), ReadExample(PlanIn(phase, "Any", "")),
                                          "2026-01-05T10:00:00Z");
    ASSERT_FALSE(restarted) << phase;
    EXPECT_EQ(restarted.error().code(), Code::kUnavailable);
    EXPECT_TRUE(restarted.error().message().contains(phase)) << restarted.error().message();
  }
  EXPECT_EQ(fake.Writes(), "");
  EXPECT_TRUE(RestartRollout(fake.kubectl(), ReadExample(CompletePlan()), "2026-01-05T10:00:00Z"));
}

TEST(RolloutActions, RestartWritesTheTimeOnceASecond) {
  const FakeKubectl fake(ActionRules());
  const std::string now = "2026-01-05T10:00:00Z";
  EXPECT_EQ(RestartRollout(fake.kubectl(), ReadExample(StoppedPlan()), now).value(),
            "cacheplan.optcache.io/imagenet restarted\n");
  EXPECT_TRUE(fake.Writes().ends_with(
      R"(--patch={"spec":{"rollout":{"restartedAt":"2026-01-05T10:00:00Z"}}})"
      "\n"));
  nlohmann::json again = StoppedPlan();
  again["spec"]["rollout"]["restartedAt"] = now;
  EXPECT_EQ(RestartRollout(fake.kubectl(), ReadExample(again), now).error().code(),
            Code::kInvalidArgument);
}

TEST(RolloutActions, TellWhyTheyMayNot) {
  const FakeKubectl fake({});
  EXPECT_EQ(PauseRollout(fake.kubectl(), ReadExample(PlanAsJson())).error().code(),
            Code::kPermissionDenied);
}

TEST(PlanNameOf, TakesWhatKubectlTakes) {
  using Words = std::vector<std::string>;
  for (const Words& words :
       {Words{"imagenet"}, Words{"cacheplan/imagenet"}, Words{"cacheplans.optcache.io/imagenet"},
        Words{"ocplan", "imagenet"}, Words{"cacheplan", "imagenet"}})
    EXPECT_EQ(PlanNameOf(words).value(), "imagenet");
  for (const Words& words :
       {Words{"deployment/imagenet"}, Words{"pod", "imagenet"}, Words{""}, Words{"cacheplan/"},
        Words{"--all"}, Words{"a/b/c"}, Words{"cacheplan/a/b"}, Words{"Imagenet"}, Words{},
        Words{std::string(300, 'a')}}) {
    const auto name = PlanNameOf(words);
    ASSERT_FALSE(name) << *name;
    EXPECT_EQ(name.error().code(), Code::kInvalidArgument);
  }
}

TEST(AskForPlan, NamesThePlanThatADatasetOfThatNameFollows) {
  const FakeKubectl fake(
      {{.words = kGetPlan, .answers = {"Error from server (NotFound): not found"}},
       {.words = "get cacheplans.optcache.io --output=json --namespace=vision",
        .answers = {
            R"({"items": [{"metadata": {"name": "mine"}, "spec": {"dataset": "imagenet"}}]})"}}});
  const auto plan = AskForPlan(fake.kubectl(), "vision", "imagenet");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), Code::kNotFound);
  EXPECT_EQ(plan.error().message(),
            "there is no CachePlan imagenet, but Dataset imagenet follows cacheplan/mine: use mine "
            "instead");
}

TEST(AskForPlan, SaysThatOptcacheIsNotInstalled) {
  const FakeKubectl fake(std::vector<FakeKubectl::Rule>{
      {.words = kGetPlan,
       .answers = {"Error: the server doesn't have a resource type \"cacheplans\""}}});
  const auto plan = AskForPlan(fake.kubectl(), "", "imagenet");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code(), Code::kNotFound);
  EXPECT_TRUE(plan.error().message().contains("not installed in this cluster"));
}

TEST(AskForOnlyPlan, NeedsExactlyOne) {
  nlohmann::json plan = PlanAsJson();
  const auto list = [&](int copies) {
    nlohmann::json plans = {{"items", nlohmann::json::array()}};
    for (int i = 0; i < copies; ++i)
      plans["items"].push_back(plan);
    return plans.dump();
  };
  const FakeKubectl fake(
      std::vector<FakeKubectl::Rule>{{.words = "get cacheplans.optcache.io --output=json",
                                      .answers = {list(1), list(0), list(2)}}});
  EXPECT_EQ(AskForOnlyPlan(fake.kubectl(), "").value().name, "imagenet");
  EXPECT_EQ(AskForOnlyPlan(fake.kubectl(), "").error().code(), Code::kNotFound);
  EXPECT_EQ(AskForOnlyPlan(fake.kubectl(), "").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::cli
