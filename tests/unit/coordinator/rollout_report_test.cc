// What is said to be observed of a rollout, and predicted of the same.

#include <gtest/gtest.h>

#include "coordinator/rollout.h"
#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

// Nothing is planned: trials say what a revision is worth.
class Predicted : public Rollout {
 protected:
  Predicted() { story_.inputs.is_tried = true; }
  // The revision before stays in force.
  void Stay() {
    story_.inputs.revision = "old";
    story_.Run();
  }
  // Nothing has been read since the epoch that was counted.
  void Complete() {
    story_.Run();
    ASSERT_EQ(story_.Phase(), "Observe");
    story_.EndPass();
    story_.EndPass();
    story_.Run();
    ASSERT_EQ(story_.Phase(), "Complete") << story_.Reason();
  }
  RolloutReport Report() const { return ReportOf(story_.state, story_.inputs); }
};

TEST_F(Predicted, WhatWasCountedStandsUntilAnotherEpochEnds) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(Complete());
  ASSERT_TRUE(story_.state.forecast);
  EXPECT_FALSE(Report().observed);
  EXPECT_FALSE(Report().forgets);
  story_.Read(2, 0);
  EXPECT_TRUE(Report().forgets) << "it was of other jobs";
}

TEST_F(Predicted, AForecastIsOfTheJobsThatRead) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(Complete());
  story_.EndPass();
  ASSERT_TRUE(Report().observed);
  EXPECT_EQ(Report().predicted, story_.state.predicted);
  EXPECT_EQ(Report().predicted->hit_permille, 600U);
  story_.Read(2, 4);
  story_.Step();
  ASSERT_TRUE(story_.state.forecast->awaited);
  EXPECT_FALSE(Report().predicted);
  story_.Run();
  story_.EndPass();
  EXPECT_FALSE(Report().predicted) << "the first job has not read all of it beside the other";
  story_.EndPass();
  EXPECT_EQ(Report().predicted, story_.state.predicted);
}

TEST_F(Predicted, AForecastStandsAloneUntilAFirstPassIsObserved) {
  story_.Read(1, 0);
  Stay();
  EXPECT_FALSE(Report().observed);
  EXPECT_TRUE(Report().predicted);
  story_.EndPass();
  EXPECT_TRUE(Report().observed);
  EXPECT_FALSE(Report().predicted) << "it is of no first pass";
  story_.EndPass();
  EXPECT_TRUE(Report().predicted);
}

TEST_F(Predicted, AForecastOfTwoJobsIsNoneOfThePassOfOne) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  Stay();
  story_.EndPass();
  story_.EndPass();
  const std::vector<PassStatus> both = story_.inputs.passes;
  std::erase_if(story_.inputs.passes, [](const PassStatus& pass) { return pass.sum.stream == 2; });
  EXPECT_TRUE(Report().observed);
  EXPECT_FALSE(Report().predicted);
  story_.inputs.passes = both;
  EXPECT_TRUE(Report().predicted);
}

TEST_F(Predicted, AForecastIsOfNoJobThatHasEnded) {
  story_.Read(1, 4);
  Stay();
  story_.EndPass();
  story_.EndPass();
  ASSERT_TRUE(Report().predicted);
  story_.inputs.passes.push_back(story_.inputs.passes.back());
  story_.inputs.passes.back().sum.stream = 2;
  EXPECT_FALSE(Report().predicted);
}

TEST_F(Predicted, AForecastIsOfNoJobWhoseOrderIsNotKnown) {
  story_.Read(1, 4);
  Stay();
  story_.EndPass();
  story_.EndPass();
  ASSERT_TRUE(Report().predicted);
  story_.inputs.streams[0].order_known = false;
  EXPECT_FALSE(Report().predicted);
}

// Nodes answer what they were asked, and that was for one more.
TEST_F(Predicted, AForecastIsOfTheNodesThatWereAsked) {
  story_.inputs.revision = "old";
  story_.Read(1, 4);
  story_.StepUntilStill();
  ASSERT_TRUE(story_.state.forecast->awaited);
  const RolloutNode gone = story_.inputs.nodes.back();
  story_.inputs.nodes.pop_back();
  story_.Run();
  ASSERT_TRUE(story_.state.predicted);
  story_.EndPass();
  story_.EndPass();
  EXPECT_FALSE(Report().predicted);
  story_.inputs.nodes.push_back(gone);
  story_.Run();
  story_.EndPass();
  story_.EndPass();
  EXPECT_TRUE(Report().predicted);
}

// What it held is read again.
TEST_F(Predicted, AForecastIsOfNoPassInWhichANodeStartsAgain) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(Complete());
  ++story_.Node("b").incarnation;
  story_.Run();
  story_.EndPass();
  EXPECT_TRUE(Report().observed);
  EXPECT_FALSE(Report().predicted);
  story_.EndPass();
  EXPECT_TRUE(Report().predicted);
}

TEST_F(Predicted, WhatAPlanCoversIsPredictedByIt) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(Complete());
  story_.EndPass();
  PassReport& last = story_.inputs.passes.back().sum;
  last.planned_reads = RolloutStory::kReads;
  last.planned_misses = 500;
  EXPECT_EQ(Report().predicted->hit_permille, 500U);
}

// There it is of the update, and what is observed is not.
TEST_F(Predicted, AForecastOfTheUpdateIsNotOfTheRevisionInForce) {
  story_.predicted["new"] = 900;
  story_.Read(1, 4);
  ReadOnBefore();
  story_.Run();
  ASSERT_EQ(story_.Reason(), "PredictedWorse");
  ASSERT_TRUE(story_.state.predicted);
  EXPECT_TRUE(Report().observed);
  EXPECT_FALSE(Report().predicted);
}

TEST_F(Predicted, InObserveAForecastIsOfAllJobsThatRead) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.EndPass();
  const std::vector<PassStatus> both = story_.inputs.passes;
  std::erase_if(story_.inputs.passes, [](const PassStatus& pass) { return pass.sum.stream == 2; });
  story_.Step();
  EXPECT_TRUE(Report().observed);
  EXPECT_FALSE(Report().predicted);
  story_.inputs.passes = both;
  story_.Step();
  EXPECT_EQ(Report().predicted, story_.state.predicted);
}

}  // namespace
}  // namespace optcache::coordination
