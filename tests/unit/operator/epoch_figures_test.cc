#include "operator/reconcile/cacheplan/epoch_figures.h"

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using coordination::EpochNumbers;
using coordination::PassStatus;
using coordination::RolloutInputs;
using coordination::RolloutPhase;
using coordination::RolloutState;

constexpr std::uint64_t kReads = 1000;
constexpr EpochNumbers kForecast{.hit_permille = 300, .store_bytes = 70'000, .moved_bytes = 1};

PassStatus Pass(StreamId stream, PassNumber pass, std::uint64_t planned_reads = 0) {
  return {.stream = "job",
          .length = kReads,
          .complete = true,
          .sum = {.stream = stream,
                  .pass = pass,
                  .hits = 290,
                  .misses = 710,
                  .miss_bytes = 71'000,
                  .planned_reads = planned_reads,
                  .planned_misses = planned_reads / 2,
                  .planned_miss_bytes = 100 * planned_reads / 2}};
}

// One job reads by a revision that is not planned; a forecast is of it.
class EpochFigures : public testing::Test {
 protected:
  EpochFigures() {
    state_.current = state_.revision = "pin";
    state_.predicted = kForecast;
    state_.forecast = {.jobs = "of job 1", .awaited = false};
    Read(1, 4);
    inputs_.passes = {Pass(1, 3)};
  }
  void Read(StreamId id, PassNumber pass) {
    inputs_.streams.push_back({.id = id, .name = "job" + std::to_string(id), .pass = pass});
  }
  std::optional<EpochNumbers> Predicted(bool forecast_counts = true) const {
    return PredictedOfObserved(state_, inputs_, forecast_counts);
  }

  RolloutState state_;
  RolloutInputs inputs_;
};

TEST_F(EpochFigures, AForecastIsOfTheJobsThatRead) {
  EXPECT_EQ(Predicted(), kForecast);
  state_.forecast->awaited = true;
  EXPECT_FALSE(Predicted()) << "it is of those before";
}

TEST_F(EpochFigures, AForecastIsOfNoFirstPass) {
  inputs_.passes = {Pass(1, 0)};
  EXPECT_FALSE(Predicted());
  inputs_.passes.push_back(Pass(1, 1));
  EXPECT_EQ(Predicted(), kForecast);
}

TEST_F(EpochFigures, AForecastOfTwoJobsIsNoneOfThePassOfOne) {
  Read(2, 1);
  EXPECT_FALSE(Predicted());
  inputs_.passes.push_back(Pass(2, 1));
  EXPECT_EQ(Predicted(), kForecast);
}

TEST_F(EpochFigures, AForecastIsNotOfAJobThatHasEnded) {
  inputs_.passes.push_back(Pass(2, 5));
  EXPECT_FALSE(Predicted());
}

TEST_F(EpochFigures, AForecastThatDoesNotCountPredictsNothing) {
  EXPECT_FALSE(Predicted(/*forecast_counts=*/false));
  inputs_.passes = {Pass(1, 3, kReads)};
  EXPECT_TRUE(Predicted(/*forecast_counts=*/false)) << "by the plan";
}

TEST_F(EpochFigures, WhatAPlanCoversIsPredictedByIt) {
  const EpochNumbers planned{.hit_permille = 500, .store_bytes = 50'000};
  inputs_.passes = {Pass(1, 0, kReads)};
  EXPECT_EQ(Predicted(), planned);
  for (const auto phase : {RolloutPhase::kPrepare, RolloutPhase::kStopped}) {
    state_.phase = phase;
    EXPECT_EQ(Predicted(), planned);
  }
}

// The forecast is of a later pass, by the plan.
TEST_F(EpochFigures, WhatNoPlanCoversOfARevisionThatPlansIsNotPredicted) {
  state_.forecast.reset();
  EXPECT_FALSE(Predicted());
}

// There it is of the update, and what is observed is not.
TEST_F(EpochFigures, ForecastsOfTheUpdateAreNotOfTheRevisionInForce) {
  for (const auto phase :
       {RolloutPhase::kPrepare, RolloutPhase::kActivate, RolloutPhase::kStopped}) {
    state_.phase = phase;
    EXPECT_FALSE(Predicted());
    EXPECT_FALSE(ForecastOfReaders(state_));
  }
}

TEST_F(EpochFigures, InObserveAllJobsThatReadAreCounted) {
  state_.phase = RolloutPhase::kObserve;
  state_.marks = {{.stream = 1, .pass = 3, .passes = 1}, {.stream = 2, .pass = 0, .passes = 0}};
  state_.sums = {.passes = 1, .reads = kReads, .hits = 290, .store_bytes = 71'000};
  EXPECT_EQ(Predicted(), kForecast) << "job 2 has ended";
  Read(2, 0);
  EXPECT_FALSE(Predicted());
  state_.marks->back() = {.stream = 2, .pass = 1, .passes = 1};
  EXPECT_EQ(Predicted(), kForecast);
  inputs_.streams.erase(inputs_.streams.begin());
  EXPECT_FALSE(Predicted()) << "job 1 has ended";
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
  RolloutInputs inputs_;
};

TEST_F(InForce, IsPredictedFromTheInputsOfTheUpdate) {
  EXPECT_EQ(ForecastInForce(state_, inputs_),
            (EpochNumbers{.hit_permille = 300, .store_bytes = 70}));
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
