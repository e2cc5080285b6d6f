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
  return DecideCachePlan(observed).applies.back().object.at("status");
}

std::string ConditionIn(const Json& status, const std::string& type) {
  const kube::Condition condition = kube::ConditionOf({{"status", status}}, type);
  return std::string(kube::ToText(condition.status)) + " " + condition.reason;
}

// Three nodes, of which so many have taken over the newest inputs.
PlanView Following(std::uint64_t active) {
  PlanView view{.digest = "abc", .nodes_desired = 3, .nodes_active = active};
  for (const char* name : {"a", "b", "c"})
    view.nodes.push_back({.name = name, .planned = true});
  return view;
}

TEST(DecideCachePlan, SaysHowManyNodesFollowIt) {
  PlanObserved observed = Followed();
  observed.view = Following(2);
  Json status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Available"), "True Followed");
  EXPECT_EQ(status["nodes"], Json::parse(R"({"desired": 3, "prepared": 0, "active": 0})"));
  EXPECT_EQ(status["observedGeneration"], 2);
  observed.view = Following(3);
  status = StatusOf(observed);
  EXPECT_EQ(ConditionIn(status, "Progressing"), "False Complete");
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_FALSE(status.contains("predicted")) << "nothing is observed";
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
  observed.view->passes = {{.stream = "vision/job/train",
                            .length = 14059,
                            .complete = true,
                            .sum = {.stream = 0xa1,
                                    .pass = 0,
                                    .hits = 7873,
                                    .misses = 6186,
                                    .miss_bytes = 61'860'000,
                                    .moved_bytes = 1'000'000,
                                    .planned_reads = 14059,
                                    .planned_misses = 6158,
                                    .planned_miss_bytes = 61'580'000}}};
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

// Nodes follow another plan's revision; there is none of this one to come from.
TEST(DecideCachePlan, OneThatTakesThePlaceOfAnotherIsInForceAtOnce) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  for (coordination::RolloutNode& node : observed.view->nodes)
    node.revision = "0123456789";
  const Decision decision = DecideCachePlan(observed);
  const Json& status = decision.applies.back().object.at("status");
  EXPECT_EQ(ConditionIn(status, "Progressing"), "False Complete");
  EXPECT_EQ(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(status["nodes"]["active"], 0);
  EXPECT_TRUE(decision.events.empty());
}

TEST(DecideCachePlan, WhileTheDatasetIsOnNoNodeAnUpdateWaits) {
  PlanObserved observed = Followed();
  observed.view = PlanView{};
  for (const char* retention : {"Pin", "LRU"}) {
    observed.plan["spec"]["retention"] = retention;
    for (int step = 0; step < 8; ++step) {
      const Decision decision = DecideCachePlan(observed);
      for (const Change& change : decision.applies) {
        if (!change.create_only) continue;
        observed.revisions.push_back({.name = kube::KeyOf(change.object).name,
                                      .number = change.object["revision"],
                                      .content = change.object["data"]["spec"]});
      }
      observed.plan["status"] = decision.applies.back().object.at("status");
    }
    EXPECT_EQ(ConditionIn(observed.plan["status"], "Progressing"), "False NotPlaced");
  }
  const Json& status = observed.plan["status"];
  EXPECT_EQ(status["rollout"]["phase"], "Prepare");
  EXPECT_NE(status["currentRevision"], status["updateRevision"]);
  EXPECT_EQ(observed.revisions.size(), 2U);
}

std::string DegradedOf(const PlanObserved& observed) {
  const kube::Condition condition = kube::ConditionOf({{"status", StatusOf(observed)}}, "Degraded");
  return condition.reason + ": " + condition.message;
}

TEST(DecideCachePlan, NamesWhatNodesAndJobsDoNotDoAsTheyShould) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  EXPECT_EQ(DegradedOf(observed), "AsWanted: what is read is planned");
  observed.view->jobs = {{.name = "v/j/d/l", .differs = "seed: 1, 2 (CachePlan, then the job)"}};
  EXPECT_EQ(DegradedOf(observed), "SamplerDiffers: v/j/d/l: seed: 1, 2 (CachePlan, then the job)");
  observed.view->missing = {"m1", "m2", "m3", "m4", "m5"};
  EXPECT_EQ(DegradedOf(observed),
            "NodesMissing: the nodes of these machines do not report to the operator: m1, m2, m3 "
            "and 2 more");
  observed.view->nodes_that_differ = {"b"};
  EXPECT_EQ(DegradedOf(observed),
            "PlansDiffer: these nodes have derived other plans than the rest from the same inputs: "
            "b: please report this");
  observed.view->nodes_that_differ.clear();
  observed.view->drifted = {"a", "b", "c", "d", "e", "f", "g"};
  EXPECT_EQ(DegradedOf(observed),
            "NodesDiffer: these nodes do not follow the revision that they should: a, b, c, d, e "
            "and 2 more");
}

TEST(DecideCachePlan, KeepsWhatWasWrittenWhileNothingIsKnown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.plan["status"] = StatusOf(observed);
  observed.view.reset();
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
}

TEST(DecideCachePlan, WhatWasWrongStaysSoWhileNothingIsKnown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.view->missing = {"m1"};
  observed.plan["status"] = StatusOf(observed);
  ASSERT_TRUE(DegradedOf(observed).starts_with("NodesMissing"));
  observed.view.reset();
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
}

// A new leader has heard of one node, and nothing yet of what was wrong.
TEST(DecideCachePlan, WhatWasWrittenStaysUntilAllNodesAreKnown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.view->jobs = {{.name = "v/j/d/l", .order_known = false}};
  observed.plan["status"] = StatusOf(observed);
  ASSERT_TRUE(DegradedOf(observed).starts_with("OrderUnknown"));
  observed.view = Following(1);
  observed.view->all_known = false;
  observed.plan["metadata"]["generation"] = 3;
  observed.plan["spec"]["retention"] = "LRU";
  const Decision decision = DecideCachePlan(observed);
  EXPECT_EQ(decision.applies.back().object.at("status"), observed.plan["status"]);
  EXPECT_EQ(decision.requeue_after, std::chrono::seconds(1));
  observed.view->all_known = true;
  EXPECT_EQ(StatusOf(observed)["observedGeneration"], 3);
  EXPECT_TRUE(DegradedOf(observed).starts_with("AsWanted"));
}

TEST(DecideCachePlan, AFirstRevisionWaitsForNobody) {
  PlanObserved observed = Followed();
  observed.view = Following(1);
  observed.view->all_known = false;
  EXPECT_EQ(StatusOf(observed)["rollout"]["phase"], "Complete");
}

// A new leader takes as long as the one before to be sure.
TEST(DecideCachePlan, WhatWasFoundStaysUntilItIsOver) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  PlanView& view = *observed.view;
  view.drifted = {"b"};
  observed.plan["status"] = StatusOf(observed);
  view.drifted.clear();
  view.some_drift = true;
  EXPECT_TRUE(DegradedOf(observed).starts_with("NodesDiffer"));
  view.some_drift = false;
  view.some_are_absent = true;
  EXPECT_TRUE(DegradedOf(observed).starts_with("AsWanted")) << "none has been absent for long";

  view.missing = {"m1"};
  observed.plan["status"] = StatusOf(observed);
  view.missing.clear();
  EXPECT_TRUE(DegradedOf(observed).starts_with("NodesMissing"));
  view.some_are_absent = false;
  EXPECT_TRUE(DegradedOf(observed).starts_with("AsWanted"));

  view.nodes_that_differ = {"b"};
  observed.plan["status"] = StatusOf(observed);
  view.nodes_that_differ.clear();
  view.nodes[1].planned = false;
  EXPECT_TRUE(DegradedOf(observed).starts_with("PlansDiffer")) << "it derives";
  view.nodes[1].planned = true;
  EXPECT_TRUE(DegradedOf(observed).starts_with("AsWanted"));
}

TEST(DecideCachePlan, DoesNotSayThatItLookedWhileNothingIsKnown) {
  PlanObserved observed = Followed();
  observed.view = Following(3);
  observed.plan["status"] = StatusOf(observed);
  observed.plan["metadata"]["generation"] = 3;
  observed.plan["spec"]["retention"] = "LRU";
  observed.view.reset();
  EXPECT_EQ(StatusOf(observed)["observedGeneration"], 2);
  observed.plan.erase("status");
  EXPECT_FALSE(StatusOf(observed).contains("observedGeneration"));
}

TEST(DecideCachePlan, NeverWritesARolloutOverALaterOne) {
  PlanObserved observed = Followed();
  observed.plan["metadata"]["resourceVersion"] = "41";
  observed.view = Following(3);
  const auto version = [&] { return DecideCachePlan(observed).applies.back().resource_version; };
  observed.plan["status"] = StatusOf(observed);
  EXPECT_EQ(version(), "41") << "nothing has changed, but there may be another by now";
  observed.view.reset();
  EXPECT_EQ(version(), "41") << "what is kept is written, too";
  observed.plan["spec"]["retention"] = "Belady";
  EXPECT_EQ(version(), "41");
  observed.plan.erase("status");
  EXPECT_EQ(version(), "");
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
  for (int look = 0; look < 2; ++look)
    observed.plan["status"] = StatusOf(observed);
  observed.view->jobs[0].position = 149;
  observed.view->jobs[0].rate = 51;
  EXPECT_EQ(StatusOf(observed), observed.plan["status"]);
  observed.view->jobs[0].position = 150;
  EXPECT_EQ(StatusOf(observed)["jobs"][0]["position"], 150);
  EXPECT_EQ(StatusOf(observed)["jobs"][0]["length"], 1000);
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
