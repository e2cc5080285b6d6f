#include "cli/rollout/rollout_progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/golden_file.h"
#include "unit/cli/plan_examples.h"
#include "wire/stream_id.h"

namespace optcache::cli {
namespace {

RolloutProgress Tell(const nlohmann::json& plan) {
  const auto read = ReadPlanResource(plan.dump());
  EXPECT_TRUE(read) << read.error().message();
  const auto revisions = ReadPlanRevisions(kRevisions);
  EXPECT_TRUE(revisions) << revisions.error().message();
  return TellRollout(*read, *revisions);
}

std::string AsText(const std::string& title, const RolloutProgress& progress) {
  constexpr const char* kOutcomes[] = {"under way", "succeeded", "failed"};
  std::string text = "# " + title + ": " + kOutcomes[static_cast<std::size_t>(progress.outcome)] +
                     "\n" + progress.line + "\n";
  if (const std::string bar = RolloutBar(progress); !bar.empty()) text += bar + "\n";
  if (!progress.advice.empty()) text += progress.advice + "\n";
  return text + "\n";
}

TEST(RolloutProgress, TellsEachPhase) {
  std::string text;
  text += AsText("spec not observed", Tell(PlanAsJson(R"({"metadata": {"generation": 8}})")));
  text += AsText("Prepare", Tell(PlanAsJson()));
  text += AsText("Prepare, paused", Tell(PlanIn("Prepare", "Paused",
                                                "spec.rollout.paused: 1 of 3 nodes have derived it",
                                                R"({"spec": {"rollout": {"paused": true}}})")));
  text += AsText("Prepare, on no node",
                 Tell(PlanIn("Prepare", "NotPlaced", "the Dataset is on no node: 93be01d7ac waits",
                             R"({"status": {"nodes": {"desired": 0, "prepared": 0}}})")));
  text +=
      AsText("Prepare, worse",
             Tell(PlanIn("Prepare", "PredictedWorse",
                         "more bytes of the source are predicted for a read than with 5f0c9a1b22",
                         R"({"status": {"nodes": {"prepared": 3}}})")));
  const char* const one_follows = R"({"status": {"nodes": {"prepared": 3, "active": 1}}})";
  text += AsText("Activate", Tell(PlanIn("Activate", "NodesChange", "1 of 3", one_follows)));
  text += AsText("Activate, awaiting an epoch",
                 Tell(PlanIn("Activate", "EpochAwaited", "1 of 3", one_follows)));
  text +=
      AsText("Activate, partition", Tell(PlanIn("Activate", "Partitioned", "1 of 3", one_follows)));
  text += AsText("Activate, deadline",
                 Tell(PlanIn("Activate", "ProgressDeadlineExceeded",
                             "1 of 3 nodes follow 93be01d7ac; awaited for more than 600 s: m2, m3",
                             one_follows)));
  text += AsText("Observe",
                 Tell(PlanIn("Observe", "Observing", "", R"({"status": {"nodes": {"active": 3},
                                 "rollout": {"marks": [{"stream": "a1", "pass": 7, "passes": 1}]}}})")));
  text += AsText("Observe, a job that has begun since",
                 Tell(PlanIn("Observe", "Observing", "", R"({"status": {"nodes": {"active": 3},
                                 "rollout": {"marks": [{"stream": "a1", "pass": 7, "passes": 2},
                                     {"stream": "c3", "pass": 0, "passes": 1, "later": true}]}}})")));
  text +=
      AsText("Complete, unobserved",
             Tell(PlanIn("Complete", "CompleteUnobserved",
                         "93be01d7ac is in force; nothing was observed of it, as no epoch ended "
                         "within 86400 s: vision/resnet/imagenet/train",
                         R"({"status": {"currentRevision": "imagenet-93be01d7ac"}})")));
  text +=
      AsText("GoBack", Tell(PlanIn("GoBack", "GoingBack", "1 of 3 nodes follow 5f0c9a1b22 again",
                                   R"({"status": {"rollout": {"failed": {"revision": "93be01d7ac",
                                 "reason": "BelowPredicted", "message": "observed 0.471"}}}})")));
  text += AsText("Complete", Tell(CompletePlan()));
  text += AsText("Stopped", Tell(StoppedPlan()));
  nlohmann::json again = StoppedPlan();
  again["status"]["rollout"]["phase"] = "Complete";
  again["status"]["rollout"]["failed"]["reason"] = "PrepareFailed";
  again["status"]["rollout"]["failed"]["message"] = "node c could not derive it: out of memory";
  again["status"]["currentRevision"] = again["status"]["updateRevision"];
  text += AsText("Complete, not derived again", Tell(again));
  ExpectGolden(text, "cli/rollout/phases.txt");
}

TEST(RolloutProgress, NamesTheJobsThatHaveNotBegunAnotherPass) {
  nlohmann::json plan = PlanIn("Activate", "EpochAwaited", "");
  const std::string slow = "vision/resnet/imagenet/train";
  const std::string fast = "vision/bert/imagenet/train";
  plan["status"]["jobs"].push_back({{"name", fast}, {"pass", 3}, {"position", 10}});
  const auto mark = [](const std::string& name, std::uint32_t incarnation, int pass) {
    return nlohmann::json{{"stream", fmt::format("{:016x}", wire::StreamIdOf(name, incarnation))},
                          {"pass", pass}};
  };
  plan["status"]["rollout"]["marks"] = nlohmann::json::array({mark(slow, 0, 7), mark(fast, 2, 2)});
  const std::string line = Tell(plan).line;
  EXPECT_TRUE(line.contains("the end of pass 7 of " + slow + " (42 %)")) << line;
  EXPECT_FALSE(line.contains(fast)) << line;
}

TEST(RolloutProgress, SaysThatNothingIsHeldWhereThatIsSo) {
  nlohmann::json plan = CompletePlan();
  EXPECT_EQ(Tell(plan).advice, "");
  plan["spec"]["rollout"]["acknowledge"] = true;
  EXPECT_TRUE(Tell(plan).advice.contains("acknowledge is set"));
}

TEST(RolloutProgress, SaysThatNothingWasThereToCompareWith) {
  nlohmann::json plan = CompletePlan();
  plan["status"]["rollout"]["uncompared"] = true;
  const RolloutProgress progress = Tell(plan);
  EXPECT_EQ(progress.outcome, RolloutOutcome::kSucceeded);
  EXPECT_TRUE(progress.advice.starts_with("It was not compared with the revision before"));
}

TEST(RolloutProgress, SaysWhatIsMissingThoughItIsComplete) {
  nlohmann::json plan = CompletePlan();
  plan["status"]["conditions"].push_back({{"type", "Degraded"},
                                          {"status", "True"},
                                          {"reason", "NodesMissing"},
                                          {"message", "no node reports from: m3"}});
  EXPECT_EQ(Tell(plan).outcome, RolloutOutcome::kSucceeded);
  EXPECT_EQ(Tell(plan).advice, "The plan is degraded: NodesMissing: no node reports from: m3");
  const auto read = ReadPlanResource(plan.dump());
  ASSERT_TRUE(read);
  EXPECT_TRUE(RolloutAsJson(*read, {}, TellRollout(*read, {})).contains("\"NodesMissing\""));
  plan["status"]["conditions"].back()["status"] = "False";
  EXPECT_EQ(Tell(plan).advice, "");
}

TEST(RolloutProgress, WaitsUntilNodesFollowTheFirstRevision) {
  nlohmann::json plan = CompletePlan();
  plan["status"]["nodes"]["active"] = 1;
  const RolloutProgress progress = Tell(plan);
  EXPECT_EQ(progress.outcome, RolloutOutcome::kUnderWay);
  EXPECT_TRUE(progress.line.contains("1 of 3 nodes follow revision 4 (93be01d7ac)"))
      << progress.line;
}

// One that has begun since is not waited for, nor one whose pass did not end by the deadline.
TEST(RolloutProgress, NamesOnlyJobsThatAreWaitedFor) {
  nlohmann::json plan = PlanIn("Activate", "EpochAwaited", "");
  const auto mark = [](const std::string& name, int pass) {
    return nlohmann::json{{"stream", fmt::format("{:016x}", wire::StreamIdOf(name, 0))},
                          {"pass", pass}};
  };
  const std::string slow = "vision/resnet/imagenet/train";
  plan["status"]["jobs"].push_back({{"name", "vision/new/imagenet/train"}, {"pass", 0}});
  plan["status"]["rollout"]["marks"] = nlohmann::json::array({mark(slow, 7)});
  EXPECT_TRUE(Tell(plan).line.ends_with("the end of pass 7 of " + slow + " (42 %)..."));
  plan["status"]["rollout"]["overrun"] = nlohmann::json::array({mark(slow, 7)});
  EXPECT_TRUE(Tell(plan).line.ends_with("waiting for the end of an epoch...")) << Tell(plan).line;
}

TEST(RolloutProgress, ACompletePlanIsNotYetItsNextChange) {
  nlohmann::json plan = CompletePlan();
  plan["metadata"]["generation"] = plan["metadata"]["generation"].get<int>() + 1;
  EXPECT_EQ(Tell(plan).outcome, RolloutOutcome::kUnderWay);
}

// A loader may read a part of the Dataset.
TEST(RolloutProgress, SaysHowFarAJobIsOfItsOwnPass) {
  const auto line = [](const char* job) {
    nlohmann::json plan = PlanIn("Activate", "EpochAwaited", "");
    plan["status"]["jobs"][0].merge_patch(nlohmann::json::parse(job));
    return Tell(plan).line;
  };
  const std::string part = line(R"({"position": 500, "length": 1000})");
  EXPECT_TRUE(part.contains("pass 7 of vision/resnet/imagenet/train (50 %)...")) << part;
  const std::string end = line(R"({"position": 1000, "length": 1000})");
  EXPECT_TRUE(end.contains("(100 %)")) << end;
  for (const char* unknown :
       {R"({"length": null})", R"({"length": 0})", R"({"position": 1001, "length": 1000})"}) {
    const std::string none = line(unknown);
    EXPECT_TRUE(none.contains("pass 7 of vision/resnet/imagenet/train...")) << none;
  }
}

TEST(RolloutProgress, FailsWhereThePlanIsNotInUse) {
  nlohmann::json plan = PlanAsJson();
  plan["status"]["conditions"][0] = {{"type", "Available"},
                                     {"status", "False"},
                                     {"reason", "AnotherPlan"},
                                     {"message", "the Dataset follows CachePlan other"}};
  const RolloutProgress progress = Tell(plan);
  EXPECT_EQ(progress.outcome, RolloutOutcome::kFailed);
  EXPECT_EQ(
      progress.line,
      "cacheplan \"imagenet\" is not in use: AnotherPlan: the Dataset follows CachePlan other");
}

TEST(RolloutProgress, WaitsWhileTheOperatorHasWrittenNothing) {
  nlohmann::json plan = PlanAsJson();
  plan["status"] = nlohmann::json::object();
  plan["metadata"]["generation"] = 0;
  const RolloutProgress progress = Tell(plan);
  EXPECT_EQ(progress.outcome, RolloutOutcome::kUnderWay);
  EXPECT_TRUE(progress.line.contains("the operator has not begun")) << progress.line;
}

TEST(RolloutProgress, IsThereForScripts) {
  const auto plan = ReadPlanResource(StoppedPlan().dump());
  ASSERT_TRUE(plan);
  const auto revisions = ReadPlanRevisions(kRevisions);
  ASSERT_TRUE(revisions);
  ExpectGolden(RolloutAsJson(*plan, *revisions, TellRollout(*plan, *revisions)),
               "cli/rollout/status.json");
}

TEST(PlanResource, TakesNothingElse) {
  for (const char* text : {"", "[]", "{}", "null", R"({"kind": "Pod", "metadata": {"name": "p"}})",
                           R"({"kind": "CachePlan", "metadata": {}})"}) {
    const auto plan = ReadPlanResource(text);
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(PlanResource, TakesFieldsOfOddTypesForMissing) {
  const auto plan = ReadPlanResource(R"({"kind": "CachePlan", "metadata": {"name": "p"}, "spec": 3,
    "status": {"nodes": [], "jobs": {"a": 1}, "rollout": "x", "prediction": 5, "conditions": {}}})");
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->desired, 0U);
  EXPECT_TRUE(plan->jobs.empty());
  EXPECT_FALSE(plan->prediction);
}

}  // namespace
}  // namespace optcache::cli
