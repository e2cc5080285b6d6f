// A CachePlan's rollout as reconciliations see it: what is written, deleted and told.

#include <gtest/gtest.h>

#include "kube/conditions.h"
#include "operator/api/resources.h"
#include "operator/reconcile/cacheplan/decide.h"
#include "operator/reconcile/cacheplan/prediction.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {
namespace {

using coordination::RolloutNode;
using kube::Json;

// Three nodes follow what the status says; what is applied is as an API server would keep it.
class PlanRollout : public testing::Test {
 protected:
  PlanRollout() {
    observed_ = {.dataset_exists = true, .followed = "mine", .now = 1'800'000'000};
    observed_.plan = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
    observed_.plan["metadata"]["uid"] = "plan-uid";
    observed_.plan["metadata"]["resourceVersion"] = "41";
    observed_.plan["spec"] = {{"dataset", "imagenet"}, {"rollout", {{"activateAt", "Now"}}}};
    observed_.view.emplace();
    observed_.view->nodes_desired = observed_.view->nodes_active = 3;
    for (const char* name : {"a", "b", "c"})
      observed_.view->nodes.push_back({.name = name, .planned = true});
    Reconcile();
    AllAnswer();
  }

  Decision Reconcile() {
    Decision decision = DecideCachePlan(observed_);
    for (const Change& change : decision.applies) {
      if (change.subresource == "status") {
        observed_.plan["status"] = change.object["status"];
      } else {
        Keep(change.object);
      }
    }
    for (const Removal& removal : decision.deletes) {
      std::erase_if(observed_.revisions,
                    [&](const Revision& revision) { return revision.name == removal.key.name; });
    }
    for (const kube::EventText& event : decision.events)
      events_.push_back(event.reason);
    return decision;
  }
  void Keep(const Json& object) {
    std::erase_if(observed_.revisions, [&](const Revision& revision) {
      return revision.name == kube::KeyOf(object).name;
    });
    observed_.revisions.push_back({.name = kube::KeyOf(object).name,
                                   .uid = "uid",
                                   .owner_uid = kube::ControllerOf(object)->uid,
                                   .number = object["revision"],
                                   .content = object["data"]["spec"]});
    std::ranges::sort(observed_.revisions, {}, &Revision::number);
  }
  void AllAnswer() {
    const auto orders =
        coordination::OrdersOf(RolloutOf(observed_.plan), InputsOf(*observed_.view, observed_.now));
    for (RolloutNode& node : observed_.view->nodes) {
      const bool updated = std::ranges::find(orders.nodes, node.name) != orders.nodes.end();
      node.revision = updated ? orders.update : orders.current;
      node.trials.clear();
      for (const auto& [id, revision] : orders.trials)
        node.trials.push_back({.id = id, .digest = id + digests_[node.name]});
    }
  }
  void RunToTheEnd() {
    for (int i = 0; i < 40; ++i) {
      Reconcile();
      AllAnswer();
    }
  }
  std::string Status(const std::string& pointer) const {
    return kube::TextAt(observed_.plan, "/status" + pointer);
  }
  std::string Progress() const {
    const auto condition = kube::ConditionOf(observed_.plan, "Progressing");
    return std::string(kube::ToText(condition.status)) + " " + condition.reason;
  }

  PlanObserved observed_;
  std::vector<std::string> events_;
  std::map<std::string, std::string> digests_;
};

TEST_F(PlanRollout, TheFirstRevisionIsInForceAtOnceAndKept) {
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(Status("/currentRevision"), Status("/updateRevision"));
  ASSERT_EQ(observed_.revisions.size(), 1U);
  EXPECT_EQ(observed_.revisions[0].name, Status("/currentRevision"));
  EXPECT_EQ(Progress(), "False Complete");
  EXPECT_TRUE(events_.empty());
}

TEST_F(PlanRollout, NothingIsWrittenWhileNothingChanges) {
  const Json before = observed_.plan["status"];
  Reconcile();
  const Json settled = observed_.plan["status"];
  const Decision decision = Reconcile();
  EXPECT_EQ(observed_.plan["status"], settled);
  EXPECT_EQ(decision.applies.size(), 1U);
  EXPECT_EQ(decision.applies[0].resource_version, "41");
  EXPECT_EQ(decision.requeue_after, std::chrono::seconds(15));
}

TEST_F(PlanRollout, AChangeIsRolledOutStepByStep) {
  const std::string before = Status("/currentRevision");
  observed_.plan["spec"]["retention"] = "Pin";
  const Decision decision = Reconcile();
  EXPECT_EQ(Status("/rollout/phase"), "Prepare");
  EXPECT_EQ(Status("/currentRevision"), before);
  EXPECT_NE(Status("/updateRevision"), before);
  EXPECT_EQ(decision.applies.front().resource, kube::kControllerRevisions);  // first of all
  EXPECT_EQ(decision.applies.back().resource_version, "41");
  EXPECT_EQ(decision.requeue_after, std::chrono::seconds(1));
  RunToTheEnd();
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(Status("/currentRevision"), Status("/updateRevision"));
  EXPECT_EQ(Status("/nodes/active"), "3");
  EXPECT_EQ(events_, (std::vector<std::string>{"RolloutStarted", "RolloutComplete"}));
}

TEST_F(PlanRollout, AnEventNamesANodeThatCouldNotCompare) {
  observed_.plan["spec"]["retention"] = "Pin";
  Reconcile();
  AllAnswer();
  for (coordination::TrialReport& trial : observed_.view->nodes[1].trials) {
    if (trial.id.contains("@current")) trial.error = "300 ordered streams";
  }
  const Decision decision = Reconcile();
  EXPECT_EQ(Status("/rollout/phase"), "Activate");
  ASSERT_EQ(decision.events.size(), 1U);
  EXPECT_EQ(decision.events[0].reason, "NodesNotCompared");
  EXPECT_TRUE(decision.events[0].note.contains("compared without node b, which could not derive"))
      << decision.events[0].note;
}

TEST_F(PlanRollout, KnobsAreNoRevision) {
  observed_.plan["spec"]["rollout"]["maxUnavailable"] = 2;
  observed_.plan["spec"]["revisionHistoryLimit"] = 3;
  Reconcile();
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(observed_.revisions.size(), 1U);
}

TEST_F(PlanRollout, OneThatIsStoppedSaysWhyUntilItIsTriedAgain) {
  digests_["b"] = "odd";
  observed_.plan["spec"]["retention"] = "Pin";
  RunToTheEnd();
  EXPECT_EQ(Status("/rollout/phase"), "Stopped");
  EXPECT_EQ(Status("/rollout/failed/reason"), "DigestMismatch");
  EXPECT_EQ(Progress(), "False DigestMismatch");
  EXPECT_EQ(kube::ConditionOf(observed_.plan, "Degraded").reason, "RolloutStopped");
  EXPECT_EQ(events_, (std::vector<std::string>{"RolloutStarted", "RolloutStopped"}));
  digests_.clear();
  observed_.plan["spec"]["rollout"]["restartedAt"] = "2027-01-15T08:00:00Z";
  RunToTheEnd();
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(kube::ConditionOf(observed_.plan, "Degraded").reason, "AsWanted");
}

TEST_F(PlanRollout, WhatIsInForceAndCannotBeDerivedAnewIsNotSaidToBeOutOfForce) {
  digests_["b"] = "odd";
  observed_.plan["spec"]["rollout"]["restartedAt"] = "2027-01-15T08:00:00Z";
  RunToTheEnd();
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(Progress(), "False DigestMismatch");
  EXPECT_NE(kube::ConditionOf(observed_.plan, "Degraded").message.find("is in force, but"),
            std::string::npos);
  EXPECT_EQ(events_, (std::vector<std::string>{"RolloutStarted", "RolloutStopped"}));
}

TEST_F(PlanRollout, HistoryIsKeptUpToItsLimit) {
  observed_.plan["spec"]["revisionHistoryLimit"] = 1;
  for (const char* retention : {"Pin", "LRU", "None"}) {
    observed_.plan["spec"]["retention"] = retention;
    RunToTheEnd();
  }
  ASSERT_EQ(observed_.revisions.size(), 2U);
  EXPECT_EQ(observed_.revisions[0].content["retention"], "LRU");
  EXPECT_EQ(observed_.revisions[1].content["retention"], "None");
  observed_.plan["spec"]["retention"] = "LRU";  // back
  RunToTheEnd();
  EXPECT_EQ(observed_.revisions[1].content["retention"], "LRU");
  EXPECT_GT(observed_.revisions[1].number, 4);
  EXPECT_EQ(Status("/currentRevision"), observed_.revisions[1].name);
}

TEST_F(PlanRollout, AStepThatWasLostIsMadeAgain) {
  observed_.plan["spec"]["retention"] = "Pin";
  const Json before = observed_.plan["status"];
  Reconcile();
  const Json after = observed_.plan["status"];
  observed_.plan["status"] = before;  // a conflict
  Reconcile();
  EXPECT_EQ(observed_.plan["status"], after);
}

TEST_F(PlanRollout, WhileNothingIsKnownNothingMoves) {
  observed_.plan["spec"]["retention"] = "Pin";
  Reconcile();
  const Json before = observed_.plan["status"];
  const auto view = std::exchange(observed_.view, std::nullopt);
  Reconcile();
  EXPECT_EQ(observed_.plan["status"]["rollout"], before["rollout"]);
  EXPECT_EQ(observed_.plan["status"]["currentRevision"], before["currentRevision"]);
  observed_.view = view;
  observed_.plan["spec"]["retention"] = "Belady";  // cannot be understood
  Reconcile();
  EXPECT_EQ(observed_.plan["status"]["rollout"], before["rollout"]);
}

TEST_F(PlanRollout, ARevisionInForceWhoseContentIsLostBeginsAnew) {
  observed_.plan["spec"]["retention"] = "Pin";
  observed_.revisions.clear();
  Reconcile();  // it may only not be seen yet
  EXPECT_EQ(Status("/rollout/phase"), "Prepare");
  observed_.revisions.clear();
  observed_.now += 61;
  const Decision decision = Reconcile();
  EXPECT_EQ(Status("/rollout/phase"), "Complete");
  EXPECT_EQ(Status("/currentRevision"), Status("/updateRevision"));
  ASSERT_EQ(decision.events.size(), 1U);
  EXPECT_EQ(decision.events[0].reason, "RevisionLost");
}

// Each pass of a job hits as its revision lets it; Optimal is planned, and Pin predicted.
class FiguresOfRollout : public PlanRollout {
 protected:
  static constexpr std::uint64_t kReads = 1000;

  void EndPass(bool planned) {
    coordination::ReadingStream& stream = observed_.view->streams[0];
    const std::uint64_t misses = planned ? 440 : 700;
    observed_.view->passes = {{.stream = stream.name,
                               .length = kReads,
                               .complete = true,
                               .sum = {.stream = stream.id,
                                       .pass = stream.pass++,
                                       .hits = kReads - misses,
                                       .misses = misses,
                                       .miss_bytes = misses,
                                       .planned_reads = planned ? kReads : 0,
                                       .planned_misses = planned ? misses : 0,
                                       .planned_miss_bytes = planned ? misses : 0}}};
  }
  // Trials predict what comes of the revision: Pin is the one that is not in force at first.
  void Predict(const std::string& optimal) {
    for (RolloutNode& node : observed_.view->nodes) {
      for (coordination::TrialReport& trial : node.trials) {
        const std::uint64_t misses = trial.id.starts_with(optimal) ? 440 : 700;
        trial.all = {
            .reads = kReads, .store_reads = misses, .read_bytes = kReads, .store_bytes = misses};
      }
    }
  }
  // A job reads by Optimal, and Pin is asked for.
  void BeginPin() {
    observed_.view->streams = {{.id = 1, .name = "v/job/imagenet/train", .pass = 4}};
    observed_.plan["spec"]["rollout"]["acknowledge"] = true;
    observed_.plan["spec"]["retention"] = "Pin";
  }
  std::string Look() {
    Reconcile();
    AllAnswer();
    Predict("none");
    return Status("/rollout/phase");
  }
  void RunTo(const std::string& phase) {
    for (int i = 0; i < 60 && Status("/rollout/phase") != phase; ++i)
      Look();
    ASSERT_EQ(Status("/rollout/phase"), phase);
  }
  // Until an epoch of Pin has been counted.
  void ObservePin() {
    for (int i = 0; i < 60 && Status("/observed/hitRatio").empty(); ++i) {
      if (Status("/rollout/phase") == "Observe") EndPass(/*planned=*/false);
      Look();
    }
    EXPECT_EQ(Status("/observed/hitRatio"), "0.300");
  }
  bool BothAreEqual() const {
    const std::string observed = Status("/observed/hitRatio");
    const std::string predicted = Status("/predicted/hitRatio");
    return observed.empty() || predicted.empty() || observed == predicted;
  }
};

TEST_F(FiguresOfRollout, AreOfTheSameInEachPhase) {
  observed_.view->streams = {{.id = 1, .name = "v/job/imagenet/train", .pass = 4}};
  observed_.plan["spec"]["rollout"]["acknowledge"] = true;
  const std::string optimal = Status("/rollout/revision");
  EndPass(/*planned=*/true);
  Reconcile();
  EXPECT_EQ(Status("/predicted/hitRatio"), "0.560");
  observed_.plan["spec"]["retention"] = "Pin";
  observed_.plan["spec"]["rollout"]["abort"] = {{"whenWorseThanPreviousBy", "1"}};
  std::set<std::string> phases;
  for (int i = 0; i < 60; ++i) {
    Reconcile();
    const std::string phase = Status("/rollout/phase");
    phases.insert(phase);
    EXPECT_TRUE(BothAreEqual()) << observed_.plan["status"].dump(1);
    if (phase == "Activate") {
      EXPECT_EQ(Status("/observed/hitRatio"), "0.560") << "what was, while both are followed";
      EXPECT_EQ(Status("/predicted/hitRatio"), "0.560");
      EXPECT_EQ(Status("/rollout/predicted/hitRatio"), "0.300");
      EXPECT_EQ(Status("/rollout/current/hitRatio"), "0.560") << "from the same inputs";
    }
    AllAnswer();
    Predict(optimal);
    if (phase == "Observe" || phase == "Complete") EndPass(/*planned=*/false);
  }
  EXPECT_EQ(phases, (std::set<std::string>{"Prepare", "Activate", "Observe", "Complete"}));
  EXPECT_EQ(Status("/observed/hitRatio"), "0.300");
  EXPECT_EQ(Status("/predicted/hitRatio"), "0.300");
  EXPECT_EQ(Status("/rollout/current/hitRatio"), "");
}

// Nothing has been read since the epoch that was counted, for hours.
TEST_F(FiguresOfRollout, OfTheEpochThatWasCountedStayUntilAnotherEnds) {
  BeginPin();
  ObservePin();
  RunTo("Complete");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Look(), "Complete");
    EXPECT_EQ(Status("/observed/hitRatio"), "0.300");
    EXPECT_EQ(Status("/predicted/hitRatio"), "0.300");
  }
  EXPECT_EQ(Status("/rollout/forecast/awaited"), "false") << "other figures were asked for since";
}

// The update is observed of another job than it was predicted for.
TEST_F(FiguresOfRollout, OfAForecastAreOfItsJobs) {
  BeginPin();
  RunTo("Activate");
  observed_.view->streams = {{.id = 2, .name = "v/other/imagenet/train", .pass = 4}};
  ObservePin();
  EXPECT_EQ(Status("/predicted/hitRatio"), "");
}

// The forecast of a job that the CachePlan names, and that does not read, is of more than that.
TEST_F(FiguresOfRollout, OfAForecastAreOfTheJobsThatRead) {
  BeginPin();
  observed_.plan["spec"]["jobs"] = Json::parse(R"([{"name": "later"}])");
  ObservePin();
  EXPECT_EQ(Status("/predicted/hitRatio"), "");
}

TEST_F(FiguresOfRollout, OfAForecastAreOfItsNodesAndOfAllOrders) {
  observed_.plan["spec"]["retention"] = "Pin";
  observed_.plan["spec"]["rollout"]["acknowledge"] = true;
  RunToTheEnd();
  ASSERT_EQ(Status("/rollout/phase"), "Complete");
  observed_.view->streams = {{.id = 1, .name = "v/job/imagenet/train", .pass = 4}};
  Reconcile();
  AllAnswer();
  Predict("none");
  const auto predicted = [this] {
    Reconcile();
    EndPass(/*planned=*/false);
    EndPass(/*planned=*/false);  // the whole of it with what there is now
    Reconcile();
    EXPECT_EQ(Status("/observed/hitRatio"), "0.300");
    return Status("/predicted/hitRatio");
  };
  EXPECT_EQ(predicted(), "0.300");
  observed_.view->streams[0].order_known = false;
  EXPECT_EQ(predicted(), "");
  observed_.view->streams[0].order_known = true;
  EXPECT_EQ(predicted(), "0.300");
  const RolloutNode gone = observed_.view->nodes.back();
  observed_.view->nodes.pop_back();
  EXPECT_EQ(predicted(), "") << "fewer nodes hold less";
  observed_.view->nodes.push_back(gone);
  EXPECT_EQ(predicted(), "0.300");
}

TEST_F(FiguresOfRollout, StayWhileANewLeaderHasNotHeardAll) {
  observed_.view->streams = {{.id = 1, .name = "v/job/imagenet/train", .pass = 4}};
  EndPass(/*planned=*/true);
  Reconcile();
  const Json before = observed_.plan["status"]["observed"];
  observed_.view->all_known = false;
  observed_.view->passes[0].sum.hits = 1;
  Reconcile();
  EXPECT_EQ(observed_.plan["status"]["observed"], before);
  EXPECT_EQ(Status("/predicted/hitRatio"), "0.560");
  observed_.view->passes.clear();
  observed_.view->streams.clear();
  observed_.view->all_known = true;
  Reconcile();
  EXPECT_EQ(observed_.plan["status"]["observed"], before) << "the job has ended";
  EXPECT_EQ(Status("/predicted/hitRatio"), "0.560");
}

TEST_F(PlanRollout, APredictionIsAnsweredWhileItIsAskedFor) {
  observed_.plan["metadata"]["annotations"] = {{kPredictAnnotation, "nonsense"}};
  const Decision decision = Reconcile();
  EXPECT_NE(Status("/prediction/error"), "");
  EXPECT_EQ(decision.requeue_after, std::chrono::seconds(1));
  observed_.plan["metadata"].erase("annotations");
  Reconcile();
  EXPECT_EQ(Status("/prediction"), "");
}

}  // namespace
}  // namespace optcache::reconcile
