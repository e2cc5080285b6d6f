#include "operator/reconcile/cacheplan/rollout_status.h"

#include <gtest/gtest.h>

#include "operator/api/resources.h"

namespace optcache::reconcile {
namespace {

using coordination::RolloutPhase;
using coordination::RolloutState;
using kube::Json;

Json PlanWith(const RolloutState& state) {
  Json plan = kube::MakeObject(api::kCachePlans, {.ns = "vision", .name = "mine"});
  plan["status"] = {{"currentRevision", "mine-" + state.current},
                    {"rollout", RolloutToJson(state)}};
  return plan;
}

RolloutState Whole() {
  RolloutState state{.current = "0123456789",
                     .phase = RolloutPhase::kObserve,
                     .revision = "abcdef0123",
                     .start_time = 1'800'000'000,
                     .progress_time = 1'800'000'100,
                     .ready = 2,
                     .wanted = 3,
                     .restarted_at = "2027-01-15T08:00:00Z",
                     .tries = 2};
  state.observers = "00000000000000b2";
  state.disturbed = {{.stream = 9, .pass = 6}};
  state.changes = 1;
  state.of_several = true;
  state.overrun = {{.stream = 5, .pass = 3}};
  state.unobserved = "vision/resnet/imagenet/train";
  state.uncompared = true;
  state.activated = {.revision = "abcdef0123", .up_to = "node-b"};
  state.marks = {{.stream = 0xfedcba9876543210, .pass = 7, .passes = 1},
                 {.stream = 1, .pass = 0, .later = true}};
  state.sums = {.passes = 1,
                .reads = 1'281'167,
                .hits = 700'000,
                .store_bytes = 70'000'000'000,
                .moved_bytes = 5,
                .planned_reads = 1'281'000,
                .planned_hits = 700'001,
                .planned_store_bytes = 69'000'000'000,
                .planned_moved_bytes = 4};
  state.since = "pass 7 of vision/resnet/imagenet/train";
  state.predicted = {.hit_permille = 62, .store_bytes = 1, .moved_bytes = 2};
  state.predicted_observers = "00000000000000b1-00000000000000b2-00000000000000b5-c8";
  state.forecast = {.jobs = "00000000000000a1", .awaited = true};
  state.previous = {.numbers = {.hit_permille = 1000, .store_bytes = 3, .moved_bytes = 4},
                    .store_bytes_per_read_tenths = 712'345};
  state.previous_observers = "00000000000000b1-00000000000000b3-00000000000000b5";
  state.failed = {
      .revision = "ff", .reason = "BelowPredicted", .message = "m", .time = 1'800'000'200};
  return state;
}

TEST(RolloutStatus, IsReadBackAsItWas) {
  EXPECT_EQ(RolloutOf(PlanWith(Whole())), Whole());
  const RolloutState plain{.current = "0123456789", .revision = "0123456789"};
  EXPECT_EQ(RolloutOf(PlanWith(plain)), plain);
}

TEST(RolloutStatus, NoMarksAreNotTheSameAsMarksOfNobody) {
  RolloutState state = Whole();
  state.marks.emplace();
  EXPECT_EQ(RolloutOf(PlanWith(state)), state);
  state.marks.reset();
  EXPECT_EQ(RolloutOf(PlanWith(state)), state);
}

TEST(RolloutStatus, IsAsItsDocumentSays) {
  const Json json = RolloutToJson(Whole());
  EXPECT_EQ(json["phase"], "Observe");
  EXPECT_EQ(json["startTime"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(json["marks"][0],
            Json::parse(R"({"stream": "fedcba9876543210", "pass": 7, "passes": 1})"));
  EXPECT_TRUE(json["marks"][1]["later"]);
  EXPECT_EQ(json["predicted"]["hitRatio"], "0.062");
  EXPECT_EQ(json["predictedObservers"], Whole().predicted_observers);
  EXPECT_EQ(json["disturbed"].size(), 1U);
  EXPECT_TRUE(json["ofSeveral"]);
  EXPECT_EQ(json["previous"]["storeBytesPerRead"], "71234.5");
  EXPECT_EQ(json["previous"]["observers"], Whole().previous_observers);
  EXPECT_EQ(json["activated"], Json::parse(R"({"revision": "abcdef0123", "upTo": "node-b"})"));
}

TEST(RolloutStatus, AFailureHasOneOfOurReasonsWhoeverWroteIt) {
  for (const char* reason : {"", "  ", "Because!", "RolloutStopped"}) {
    RolloutState state = Whole();
    state.failed->reason = reason;
    EXPECT_EQ(RolloutOf(PlanWith(state)).failed->reason, "RolloutStopped");
  }
}

TEST(RolloutStatus, WhatCannotBeReadIsAsIfItWereNotThere) {
  EXPECT_EQ(RolloutOf(Json::object()), RolloutState{});
  Json plan = PlanWith(Whole());
  plan["status"]["rollout"]["phase"] = "Later";
  EXPECT_EQ(RolloutOf(plan), RolloutState{});
  plan = PlanWith(Whole());
  plan["status"]["rollout"]["ready"] = -1;
  plan["status"]["rollout"]["sums"] = "none";
  plan["status"]["rollout"]["previous"]["storeBytesPerRead"] = "1e300";
  plan["status"]["rollout"]["startTime"] = "yesterday";
  const RolloutState state = RolloutOf(plan);
  EXPECT_EQ(state.ready, 0U);
  EXPECT_FALSE(state.sums);
  EXPECT_EQ(state.previous->store_bytes_per_read_tenths, 0U);
  EXPECT_EQ(state.start_time, 0);
  plan["status"]["currentRevision"] = "another-0123456789";
  EXPECT_EQ(RolloutOf(plan).current, "");
}

// Of a node that has derived both trials of Prepare.
class InForce : public testing::Test {
 protected:
  InForce() {
    state_ = {.current = "pin", .phase = RolloutPhase::kPrepare, .revision = "optimal"};
    state_.predicted = {.hit_permille = 600, .store_bytes = 40};
    inputs_.nodes = {{.name = "a"}};
    Derive(coordination::UpdateTrial(state_), {.reads = 100, .store_reads = 40, .store_bytes = 40});
    Derive(coordination::CurrentTrial("pin"), {.reads = 100, .store_reads = 70, .store_bytes = 70});
  }
  void Derive(const std::string& id, const coordination::Forecast& all) {
    inputs_.nodes[0].trials.push_back({.id = id, .planned = {1, 1}, .all = all});
  }

  RolloutState state_;
  coordination::RolloutInputs inputs_;
};

TEST_F(InForce, IsPredictedFromTheInputsOfTheUpdate) {
  EXPECT_EQ(ForecastInForce(state_, inputs_),
            (coordination::EpochNumbers{.hit_permille = 300, .store_bytes = 70}));
  inputs_.nodes[0].trials[1].planned = {1, 2};
  EXPECT_FALSE(ForecastInForce(state_, inputs_));
}

TEST_F(InForce, StandsBesideNoOtherForecastOfTheUpdate) {
  state_.predicted->hit_permille = 500;  // of an earlier try
  EXPECT_FALSE(ForecastInForce(state_, inputs_));
}

TEST_F(InForce, IsNotKnownBeforeNodesAnswer) {
  inputs_.nodes[0].trials.pop_back();
  EXPECT_FALSE(ForecastInForce(state_, inputs_));
}

}  // namespace
}  // namespace optcache::reconcile
