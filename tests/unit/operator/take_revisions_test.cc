#include "operator/reconcile/cluster/take_revisions.h"

#include <gtest/gtest.h>

#include "operator/api/resources.h"
#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {
namespace {

using coordination::Retention;
using coordination::RolloutPhase;
using coordination::RolloutState;
using kube::Json;

Json Content(const std::string& retention) {
  return api::RevisionContent(api::ParseRevisionContent({{"retention", retention}}).value());
}

// CachePlan "mine" of vision/imagenet asks for Pin; LRU was in force before.
class TakeRevisionsTest : public testing::Test {
 protected:
  TakeRevisionsTest() {
    plan_ = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
    plan_["metadata"]["uid"] = "plan-uid";
    plan_["spec"] = {{"dataset", "imagenet"}, {"retention", "Pin"}};
    for (const char* retention : {"LRU", "Pin"}) {
      const auto choice = ChooseRevision(plan_, Content(retention), {}, 0);
      revisions_.Put(kube::KeyOf(choice.change->object), choice.change->object);
    }
  }
  ClusterDataset Take() {
    plans_.Put(kube::KeyOf(plan_), plan_);
    const std::vector<PlanObject> known = {
        {.name = "mine", .uid = "plan-uid", .spec = api::ParseCachePlanSpec(plan_)}};
    ClusterDataset dataset{.ns = "vision", .name = "imagenet"};
    TakeRevisions(ChoosePlan(known), plans_, revisions_, before_, dataset);
    return dataset;
  }
  void Write(const RolloutState& state) {
    plan_["status"] = {{"currentRevision", RevisionName("mine", state.current)},
                       {"rollout", RolloutToJson(state)}};
  }

  const std::string lru_ = RevisionHash(Content("LRU"), 0);
  const std::string pin_ = RevisionHash(Content("Pin"), 0);
  RevisionInForce before_;
  Json plan_;
  kube::ObjectCache plans_;
  kube::ObjectCache revisions_{{{kByPlan, RevisionsByPlan()}}};
};

TEST_F(TakeRevisionsTest, ANewPlanIsInForceAsItIs) {
  const ClusterDataset dataset = Take();
  EXPECT_EQ(dataset.plan.retention, Retention::kPin);
  EXPECT_EQ(dataset.revision, pin_);
}

TEST_F(TakeRevisionsTest, WhatIsWrittenIsInForceWhateverTheSpecSays) {
  Write({.current = lru_, .revision = lru_});
  const ClusterDataset dataset = Take();
  EXPECT_EQ(dataset.plan.retention, Retention::kLru);
  EXPECT_EQ(dataset.revision, lru_);
}

TEST_F(TakeRevisionsTest, WhatIsInForceStaysWhereItsRevisionIsNotSeenYet) {
  before_.content.retention = Retention::kNone;
  before_.hash = RevisionHash(Content("None"), 0);
  Write({.current = before_.hash, .revision = before_.hash});
  EXPECT_EQ(Take().plan.retention, Retention::kNone);
  before_ = {};
  EXPECT_EQ(Take().plan.retention, Retention::kPin);  // nobody knows it any more
}

TEST_F(TakeRevisionsTest, OneThatCannotBeUnderstoodStaysAsItWas) {
  Write({.current = lru_, .revision = lru_});
  plan_["spec"]["retention"] = "Belady";
  EXPECT_EQ(Take().plan.retention, Retention::kLru);
  plan_.erase("status");
  EXPECT_EQ(Take().plan.retention, Retention::kOptimal);
}

TEST_F(TakeRevisionsTest, TheCoordinatorIsToldWhoFollowsWhat) {
  RolloutState state{.current = lru_, .phase = RolloutPhase::kActivate, .revision = pin_};
  state.activated = {.revision = pin_, .up_to = "b"};
  const std::string trial = coordination::UpdateTrial(state);
  Write(state);
  ClusterDataset dataset = Take();
  dataset.spec.capacity = {.percent = 50};
  dataset.status.manifest_digest = "0100000000000080ff";
  dataset.status.samples = 10;
  dataset.status.bytes = 1000;
  plan_["metadata"]["annotations"] = {{kPredictAnnotation, R"({"id": "x", "spec": {}})"}};
  dataset.question = QuestionOf(plan_);
  coordination::DesiredState nothing;
  coordination::ClusterStatus status;
  status.members = {{.id = 1, .name = "a", .capacity = 1000}};
  status.datasets.push_back({.name = "vision/imagenet"});
  status.datasets[0].nodes = {{.name = "a", .revision = pin_},
                              {.name = "b", .trials = {{.id = trial}}},
                              {.name = "c", .revision = pin_}};
  std::map<std::string, MemberMachine> machines;
  const ClusterPlan plan = PlanCluster(
      {.datasets = {dataset}, .machines = &machines, .state = &nothing, .status = &status});
  ASSERT_EQ(plan.specs.size(), 1U);
  const coordination::DatasetSpec& spec = plan.specs[0];
  EXPECT_EQ(spec.revision, lru_);
  EXPECT_EQ(spec.retention, Retention::kLru);
  ASSERT_TRUE(spec.update);
  EXPECT_EQ(spec.update->revision.name, pin_);
  EXPECT_EQ(spec.update->revision.retention, Retention::kPin);
  EXPECT_EQ(spec.update->nodes, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(spec.trials.size(), 3U);
  EXPECT_EQ(spec.trials[0].id, trial);
  EXPECT_EQ(spec.trials[1].id, PresentTrial(*dataset.question, lru_));
  EXPECT_EQ(spec.trials[1].revision.retention, Retention::kLru);
  EXPECT_EQ(spec.trials[2].id, dataset.question->trial);
  EXPECT_EQ(spec.trials[2].revision.retention, Retention::kOptimal);
  EXPECT_FALSE(spec.trials[0].on_request) << "it is compared with neither of the others";
  EXPECT_TRUE(spec.trials[1].on_request);
  EXPECT_TRUE(spec.trials[2].on_request);
}

}  // namespace
}  // namespace optcache::reconcile
