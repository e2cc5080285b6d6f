#include <gtest/gtest.h>

#include "kube/conditions.h"
#include "operator/reconcile/cacheplan/decide.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

PlanObserved Observed() {
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
  return {.digest = "abc", .nodes_desired = 3, .nodes_active = active, .predicted_hit_ratio = 0.3};
}

TEST(DecideCachePlan, SaysHowManyNodesFollowIt) {
  PlanObserved observed = Observed();
  observed.view = Following(2);
  Json status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Available"), "True Followed");
  EXPECT_EQ(ConditionIn(status, "Progressing"), "True NodesChange");
  EXPECT_EQ(status["nodes"], Json::parse(R"({"desired": 3, "prepared": 2, "active": 2})"));
  EXPECT_EQ(status["observedGeneration"], 2);
  EXPECT_FALSE(status.contains("currentRevision"));
  observed.view = Following(3);
  status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Progressing"), "False Complete");
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(status["predicted"]["hitRatio"], "0.300");
}

TEST(DecideCachePlan, ARevisionIsNamedByWhatItAsksFor) {
  PlanObserved observed = Observed();
  observed.view = Following(3);
  const Json first = StatusOf(observed)["updateRevision"];
  observed.plan["metadata"]["generation"] = 3;
  EXPECT_EQ(StatusOf(observed)["updateRevision"], first);
  observed.plan["spec"]["retention"] = "LRU";
  EXPECT_NE(StatusOf(observed)["updateRevision"], first);
}

TEST(DecideCachePlan, SaysWhyItIsNotFollowed) {
  PlanObserved observed = Observed();
  observed.followed = "older";
  EXPECT_EQ(ConditionIn(StatusOf(observed), "Available"), "False AnotherPlan");
  observed.dataset_exists = false;
  EXPECT_EQ(ConditionIn(StatusOf(observed), "Available"), "False NoDataset");
  observed.plan["spec"]["retention"] = "Belady";
  const Json status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Invalid"), "True Invalid");
  EXPECT_EQ(ConditionIn(status, "Degraded"), "True Invalid");
}

TEST(DecideCachePlan, KeepsWhatWasWrittenWhileNothingIsKnown) {
  PlanObserved observed = Observed();
  observed.view = Following(3);
  observed.plan["status"] = StatusOf(observed);
  observed.view.reset();
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
}

TEST(DecideCachePlan, ListsJobsAndIgnoresSmallSteps) {
  PlanObserved observed = Observed();
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
  PlanObserved observed = Observed();
  observed.view = Following(3);
  observed.view->jobs = {{.name = "j", .order_known = false}};
  const Json status = StatusOf(observed);
  EXPECT_EQ(status["jobs"][0]["order"], "Unknown");
  EXPECT_EQ(ConditionIn(status, "Degraded"), "True OrderUnknown");
}

TEST(DecideCachePlan, OneThatIsBeingDeletedIsLeftAlone) {
  PlanObserved observed = Observed();
  observed.plan["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_TRUE(DecideCachePlan(observed).applies.empty());
}

}  // namespace
}  // namespace optcache::reconcile
