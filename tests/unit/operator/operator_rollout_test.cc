// A rollout from the edited CachePlan to the node's report and back, against a fake API server.

#include <gtest/gtest.h>

#include "coordination/codec.h"
#include "dataset/digest.h"
#include "operator/api/resources.h"
#include "operator/reconcile/cacheplan/revisions.h"
#include "unit/operator/operator_fixture.h"
#include "wire/stream_id.h"

namespace optcache::manager {
namespace {

// One node follows what it is told and derives what it is asked for.
class OperatorRollout : public OperatorFixture {
 protected:
  // The Dataset is placed on the node, and the first revision in force there.
  std::unique_ptr<Operator> StartWithNode() {
    PutDataset();
    auto op = Start("a");
    RunUntil([&] { return !FirstJob().is_null() && !Bundle(kSystem).is_null(); });
    FinishJob();
    material_ = JoinNode(*op);
    RunNodeUntil(*op, [&] { return IsFollowed(); });
    first_ = PlanText("/status/currentRevision");
    return op;
  }
  Json Plan() { return server.Find(api::kCachePlans, kDataset); }
  std::string PlanText(const std::string& pointer) { return kube::TextAt(Plan(), pointer); }
  void Edit(const std::string& retention) {
    server.store([&](kube::FakeApiStore& store) {
      Json plan = store.Find(api::kCachePlans, kDataset);
      plan["spec"]["retention"] = retention;
      plan["spec"]["rollout"]["activateAt"] = "Now";
      plan["metadata"]["generation"] = kube::GenerationOf(plan) + 1;
      store.Put(api::kCachePlans, plan);
    });
  }

  // One report as the state asks, and the next state if there is one. False: nobody answers now.
  bool Report(const Operator& op) {
    coordination::Report report{.node = "optcache-node-x",
                                .incarnation = 1,
                                .address = "10.0.0.9:4100",
                                .capacity = 1_MiB,
                                .member = member_,
                                .manifest_url = "https://10.0.0.9:4102",
                                .manifests = {kDigest}};
    report.applied = state_.version;
    for (const coordination::DatasetState& dataset : state_.datasets)
      report.datasets.push_back(Follow(dataset));
    report.streams = streams_;
    const auto answer =
        Ask(op, {.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)},
            material_);
    if (answer.status != 200) return false;
    const auto known = coordination::ParseReportAnswer(answer.body).value();
    member_ = known.member;
    if (known.version > state_.version) Poll(op);
    return true;
  }
  void Poll(const Operator& op) {
    const auto polled = Ask(op, {.url = "/v1/state?after=0.0&member=optcache-node-x"}, material_);
    if (polled.status != 200) return;
    auto state = coordination::ParseDesiredState(polled.body);
    ASSERT_TRUE(state) << state.error().message();
    state_ = *std::move(state);
  }
  coordination::DatasetReport Follow(const coordination::DatasetState& dataset) {
    const bool updated =
        dataset.update && std::ranges::binary_search(dataset.update->members, member_);
    coordination::DatasetReport report{
        .name = dataset.name,
        .manifest_digest = dataset.manifest_digest,
        .revision = updated ? dataset.update->revision.name : dataset.revision,
        .derived = dataset.planned};
    if (followed_.empty() || followed_.back() != report.revision)
      followed_.push_back(report.revision);
    for (const coordination::TrialState& trial : dataset.trials) {
      report.trials.push_back({.id = trial.id,
                               .planned = dataset.planned,
                               .digest = "d",
                               .all = {.reads = 10, .store_reads = 4, .store_bytes = 400}});
    }
    return report;
  }
  template <typename Condition>
  void RunNodeUntil(const Operator& op, Condition&& condition) {
    for (int tries = 0; tries < 2400 && !condition(); ++tries) {  // two minutes
      Report(op);
      RunFor(milliseconds(50));
    }
    EXPECT_TRUE(condition()) << Plan().dump(1);
  }
  // The first revision is complete before any node has the Dataset: that one follows it is more.
  // The status says so only at its next look, which is seconds away.
  bool IsFollowed() {
    return PlanText("/status/rollout/phase") == "Complete" && !followed_.empty();
  }
  bool IsComplete() {
    return PlanText("/status/rollout/phase") == "Complete" &&
           PlanText("/status/currentRevision") != first_ &&
           PlanText("/status/currentRevision") == PlanText("/status/updateRevision");
  }

  net::TlsMaterial material_;
  coordination::DesiredState state_;
  coordination::MemberId member_ = 0;
  std::vector<coordination::StreamReport> streams_;  // that read through the node
  std::vector<std::string> followed_;                // revisions, one after the other
  std::string first_;
};

TEST_F(OperatorRollout, AnEditedPlanComesIntoForce) {
  const auto op = StartWithNode();
  Edit("Pin");
  RunNodeUntil(*op, [&] { return IsComplete(); });
  RunNodeUntil(*op, [&] {
    return state_.datasets.size() == 1 &&
           state_.datasets[0].retention == coordination::Retention::kPin &&
           !state_.datasets[0].update;
  });
  const std::string hash = reconcile::HashOfName("imagenet", PlanText("/status/currentRevision"));
  EXPECT_EQ(followed_.back(), hash);
  EXPECT_EQ(followed_.size(), 2U);  // the first, then the update
  EXPECT_EQ(PlanText("/status/nodes/active"), "1");
  const Json kept = server.Find(kube::kControllerRevisions,
                                {.ns = "vision", .name = PlanText("/status/currentRevision")});
  EXPECT_EQ(kube::TextAt(kept, "/data/spec/retention"), "Pin");
  EXPECT_EQ(kube::TextAt(kept, "/revision"), "2");
  std::string page;
  const std::string shown =
      R"(optcache_plan_rollout_phase{dataset="vision/imagenet",phase="complete"} 1)";
  for (int tries = 0; tries < 100 && page.find(shown) == std::string::npos; ++tries)
    page = MetricsOf(*op);
  EXPECT_NE(page.find(shown), std::string::npos) << page;
  EXPECT_NE(
      page.find(R"(optcache_plan_rollout_reason{dataset="vision/imagenet",reason="complete"} 1)"),
      std::string::npos);
  for (const std::string state : {"drifted", "missing"}) {
    EXPECT_NE(page.find(R"(optcache_plan_rollout_nodes{dataset="vision/imagenet",state=")" + state +
                        R"("} 0)"),
              std::string::npos);
  }
}

// Of a job that was replaced, and of its successor by the same name: the one that is least far.
TEST_F(OperatorRollout, JobsAreShownByTheLabelsOfTheirSidecars) {
  const auto op = StartWithNode();
  const auto stream = [](std::string name, PassNumber pass) {
    return coordination::StreamReport{
        .id = wire::StreamIdOf(name, 1),
        .name = std::move(name),
        .incarnation = 1,
        .dataset = kDataset.ToString(),
        .dataset_key = dataset::KeyOf(kDataset.ToString(), kDigest),
        .ranks = {{.recipe = {.size = 1000}, .started = true, .pass = pass, .position = 250}}};
  };
  streams_ = {stream("speech/train.0a1b2c3d/vision:imagenet/val", 3),
              stream("speech/train.ffffffff/vision:imagenet/val", 2)};
  const std::string labels =
      R"({namespace="speech",training_job="train",dataset="vision/imagenet",loader="val"})";
  std::string page;
  RunNodeUntil(*op, [&] {
    page = MetricsOf(*op);
    return page.find("optcache_job_pass" + labels + " 2") != std::string::npos;
  });
  EXPECT_NE(page.find("optcache_job_progress_ratio" + labels + " 0.25"), std::string::npos) << page;
}

// What no plan predicts is tried, once.
TEST_F(OperatorRollout, AFirstRevisionThatIsNotPlannedIsPredictedToo) {
  Json plan = kube::MakeObject(api::kCachePlans, kDataset);
  plan["metadata"]["generation"] = 1;
  plan["spec"] = {{"dataset", "imagenet"}, {"retention", "Pin"}};
  server.store([&](kube::FakeApiStore& store) { store.Put(api::kCachePlans, plan); });
  const auto op = StartWithNode();
  EXPECT_EQ(PlanText("/status/predicted/hitRatio"), "");
  const std::string name = "vision/train/imagenet/train";
  streams_ = {{.id = wire::StreamIdOf(name, 1),
               .name = name,
               .incarnation = 1,
               .dataset = kDataset.ToString(),
               .dataset_key = dataset::KeyOf(kDataset.ToString(), kDigest),
               .ranks = {{.recipe = {.size = 1000}, .started = true}}}};
  RunNodeUntil(*op, [&] { return PlanText("/status/predicted/hitRatio") == "0.600"; });
  EXPECT_EQ(PlanText("/status/rollout/phase"), "Complete");
  RunNodeUntil(*op, [&] { return state_.datasets.at(0).trials.empty(); });
}

// A rollout leads from one revision of a CachePlan to another, not from one CachePlan to another.
TEST_F(OperatorRollout, AnotherPlanForTheDatasetTakesThePlaceAtOnce) {
  const auto op = StartWithNode();
  const kube::ObjectKey key{.ns = "vision", .name = "mine"};
  Json mine = kube::MakeObject(api::kCachePlans, key);
  mine["metadata"]["generation"] = 1;
  mine["spec"] = {{"dataset", "imagenet"}, {"retention", "LRU"}};
  server.store([&](kube::FakeApiStore& store) { store.Put(api::kCachePlans, mine); });
  RunNodeUntil(*op, [&] {
    mine = server.Find(api::kCachePlans, key);
    const std::string current = kube::TextAt(mine, "/status/currentRevision");
    return !current.empty() && followed_.back() == reconcile::HashOfName("mine", current);
  });
  EXPECT_EQ(kube::TextAt(mine, "/status/rollout/phase"), "Complete");
  EXPECT_EQ(followed_.size(), 2U);
  EXPECT_FALSE(state_.datasets.at(0).update);
}

TEST_F(OperatorRollout, ConflictsAreTriedAgainFromWhatIsThere) {
  const auto op = StartWithNode();
  server.FailNext("apply", "cacheplans",
                  {.response = {.status = 409, .body = {{"reason", "Conflict"}}}}, 3);
  server.FailNext("create", "controllerrevisions", {.response = {.status = 500}}, 1);
  Edit("Pin");
  RunNodeUntil(*op, [&] { return IsComplete(); });
  EXPECT_EQ(followed_.size(), 2U);
}

// A step that the API server refuses has not happened.
TEST_F(OperatorRollout, EventsTellOfStepsThatAreWritten) {
  const auto op = StartWithNode();
  server.FailNext("apply", "cacheplans",
                  {.response = {.status = 409, .body = {{"reason", "Conflict"}}}}, 4);
  Edit("Pin");
  const auto told = [&](const char* reason) { return TimesTold("vision", reason, "imagenet"); };
  RunNodeUntil(*op, [&] {
    const bool started = told("RolloutStarted") > 0;
    EXPECT_TRUE(!started || PlanText("/status/updateRevision") != first_);
    const bool complete = told("RolloutComplete") > 0;
    EXPECT_TRUE(!complete || PlanText("/status/currentRevision") != first_);
    return started && complete;
  });
  EXPECT_EQ(told("RolloutStarted"), 1U);
  EXPECT_EQ(told("RolloutComplete"), 1U);
}

TEST_F(OperatorRollout, AnAnswerThatIsLostMakesNoSecondStep) {
  const auto op = StartWithNode();
  server.FailNext("apply", "cacheplans", {.kind = kube::FakeFault::Kind::kLoseAnswer}, 4);
  Edit("Pin");
  RunNodeUntil(*op, [&] { return IsComplete(); });
  EXPECT_EQ(followed_.size(), 2U);
}

TEST_F(OperatorRollout, AnotherLeaderGoesOnWhereTheFirstStopped) {
  auto op = StartWithNode();
  const auto other = Start("b");
  RunUntil([&] { return other->Ready().ok(); });
  Edit("Pin");
  RunNodeUntil(*op,
               [&] { return PlanText("/status/rollout/activated/upTo") == "optcache-node-x"; });
  bool stopped = false;
  op->Stop([&] { stopped = true; });
  RunUntil([&] { return stopped && other->leads(); });
  RunNodeUntil(*other, [&] { return IsComplete(); });
  EXPECT_EQ(followed_.size(), 2U);  // the node never went back
}

TEST_F(OperatorRollout, APlanThatIsDeletedInTheMiddleLeavesTheDefaults) {
  const auto op = StartWithNode();
  Edit("Pin");
  RunNodeUntil(*op, [&] { return PlanText("/status/rollout/phase") == "Activate"; });
  const std::string uid = kube::UidOf(Plan());
  server.store([&](kube::FakeApiStore& store) { store.Remove(api::kCachePlans, kDataset); });
  RunNodeUntil(*op, [&] {
    return kube::UidOf(Plan()) != uid && PlanText("/status/rollout/phase") == "Complete";
  });
  EXPECT_EQ(PlanText("/status/currentRevision"), first_);  // the same content
  RunNodeUntil(*op, [&] {
    return state_.datasets.size() == 1 && !state_.datasets[0].update &&
           state_.datasets[0].retention == coordination::Retention::kOptimal;
  });
}

}  // namespace
}  // namespace optcache::manager
