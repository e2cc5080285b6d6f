#include <gtest/gtest.h>

#include "kube/conditions.h"
#include "operator/reconcile/cacheplan/decide.h"
#include "support/golden_file.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

PlanObserved Followed() {
  PlanObserved observed{.dataset_exists = true, .followed = "mine", .now = 1000};
  observed.plan = Json::parse(
      R"({"metadata": {"name": "mine", "namespace": "vision", "generation": 2},
          "spec": {"dataset": "imagenet", "retention": "Pin"}})");
  return observed;
}

Json StatusOf(const PlanObserved& observed) {
  const Decision decision = DecideCachePlan(observed);
  EXPECT_EQ(decision.applies.size(), 1U);
  EXPECT_EQ(decision.applies.at(0).subresource, "status");
  return decision.applies.at(0).object.at("status");
}

std::string ConditionIn(const Json& status, const std::string& type) {
  const kube::Condition condition = kube::ConditionOf({{"status", status}}, type);
  return std::string(kube::ToText(condition.status)) + " " + condition.reason;
}

PlanView Following(std::uint64_t active) {
  return {.digest = "abc",
          .nodes_desired = 3,
          .nodes_active = active,
          .predicted_hit_ratio = 0.3,
          .observed_hit_ratio = 0.29};
}

TEST(DecideCachePlan, SaysHowManyNodesFollowIt) {
  PlanObserved observed = Followed();
  observed.view = Following(2);
  Json status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Available"), "True Followed");
  EXPECT_EQ(ConditionIn(status, "Progressing"), "True NodesChange");
  EXPECT_EQ(status["nodes"], Json::parse(R"({"desired": 3, "active": 2})"));
  EXPECT_EQ(status["observedGeneration"], 2);
  EXPECT_FALSE(status.contains("currentRevision"));
  observed.view = Following(3);
  status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Progressing"), "False Complete");
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(status["predicted"]["hitRatio"], "0.300");
  EXPECT_EQ(status["observed"]["hitRatio"], "0.290");
}

// The file is what tests/chart shows in the columns of `kubectl get`.
TEST(DecideCachePlan, WritesAWholeStatus) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.view->jobs = {{.name = "vision/job/train",
                          .pass = 1,
                          .position = 9216,
                          .length = 14059,
                          .ranks = 4,
                          .rate = 812.5}};
  ExpectGolden(StatusOf(observed).dump(1) + "\n", "operator/cacheplan-status.json");
}

TEST(DecideCachePlan, ARevisionIsNamedByWhatItAsksFor) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  const Json first = StatusOf(observed)["updateRevision"];
  observed.plan["metadata"]["generation"] = 3;
  EXPECT_EQ(StatusOf(observed)["updateRevision"], first);
  observed.plan["spec"]["retention"] = "LRU";
  EXPECT_NE(StatusOf(observed)["updateRevision"], first);
}

TEST(DecideCachePlan, SaysWhyItIsNotFollowed) {
  PlanObserved observed = Followed();
  observed.followed = "older";
  EXPECT_EQ(ConditionIn(StatusOf(observed), "Available"), "False AnotherPlan");
  observed.dataset_exists = false;
  EXPECT_EQ(ConditionIn(StatusOf(observed), "Available"), "False NoDataset");
  observed.plan["spec"]["retention"] = "Belady";
  const Json status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Invalid"), "True Invalid");
  EXPECT_EQ(ConditionIn(status, "Degraded"), "True Invalid");
}

std::string DegradedOf(const PlanObserved& observed) {
  const kube::Condition condition = kube::ConditionOf({{"status", StatusOf(observed)}}, "Degraded");
  return condition.reason + ": " + condition.message;
}

TEST(DecideCachePlan, NamesWhatThisVersionDoesNotDo) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.plan["spec"]["rollout"] = Json::parse(
      R"({"strategy": "AllAtOnce", "partition": 0, "maxUnavailable": "25%", "activateAt": "Now",
          "paused": true, "acknowledge": false,
          "abort": {"whenBelowPredictedBy": "0.05", "whenWorseThanPreviousBy": "0.1", "after": 1}})");
  EXPECT_EQ(DegradedOf(observed),
            "NotSupported: this version does not do what these ask for: spec.rollout.paused, "
            "spec.rollout.abort.whenWorseThanPreviousBy");
  observed.plan["spec"]["rollout"] = {
      {"partition", 1}, {"maxUnavailable", 2}, {"abort", {{"after", 2}}}};
  observed.plan["spec"]["jobs"] = {{{"name", "resnet"}}};
  observed.plan["spec"]["revisionHistoryLimit"] = 3;
  EXPECT_EQ(DegradedOf(observed),
            "NotSupported: this version does not do what these ask for: spec.jobs, "
            "spec.rollout.partition, spec.rollout.maxUnavailable, spec.rollout.abort.after, "
            "spec.revisionHistoryLimit");
}

TEST(DecideCachePlan, DefaultsAskForNothing) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.plan["spec"]["rollout"] = Json::parse(
      R"({"strategy": "Staged", "partition": 0, "maxUnavailable": "25%",
          "activateAt": "EpochBoundary", "paused": false, "acknowledge": false,
          "abort": {"whenBelowPredictedBy": "0.05", "whenWorseThanPreviousBy": "0.05", "after": 1}})");
  observed.plan["spec"]["revisionHistoryLimit"] = 10;
  EXPECT_EQ(DegradedOf(observed), "AsWanted: what is read is planned");
}

TEST(DecideCachePlan, KeepsWhatWasWrittenWhileNothingIsKnown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.plan["status"] = StatusOf(observed);
  observed.view.reset();
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
}

TEST(DecideCachePlan, ListsJobsAndIgnoresSmallSteps) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.view->jobs = {{.name = "vision/job/train",
                          .pass = 2,
                          .position = 100,
                          .length = 1000,
                          .ranks = 8,
                          .rate = 50}};
  observed.plan["status"] = StatusOf(observed);
  observed.view->jobs[0].position = 149;
  observed.view->jobs[0].rate = 51;
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
  observed.view->jobs[0].position = 150;
  EXPECT_EQ(StatusOf(observed)["jobs"][0]["position"], 150);
  observed.view->jobs[0].pass = 3;
  observed.view->jobs[0].position = 0;
  EXPECT_EQ(StatusOf(observed)["jobs"][0]["position"], 0);
}

TEST(DecideCachePlan, AnOrderThatIsNotKnownIsShown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.view->jobs = {{.name = "j", .order_known = false}};
  const Json status = StatusOf(observed);
  EXPECT_EQ(status["jobs"][0]["order"], "Unknown");
  EXPECT_EQ(ConditionIn(status, "Degraded"), "True OrderUnknown");
}

TEST(DecideCachePlan, OneThatIsBeingDeletedIsLeftAlone) {
  PlanObserved observed = Followed();
  observed.plan["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(DecideCachePlan(observed).applies.empty());
}

}  // namespace
}  // namespace optcache::reconcile
