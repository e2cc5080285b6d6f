#include "coordinator/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Rollout, IsStillWhileNothingHappens) {
  ASSERT_TRUE(story_.Step());
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(story_.state.current, "old");
  story_.StepUntilStill();
  EXPECT_FALSE(story_.Step());
}

TEST_F(Rollout, PrepareAsksForBothRevisionsAndWaitsForAllNodes) {
  story_.Step();
  const RolloutOrders orders = OrdersOf(story_.state, story_.inputs);
  EXPECT_EQ(orders.current, "old");
  EXPECT_THAT(orders.nodes, IsEmpty());
  EXPECT_THAT(orders.trials, ElementsAre(std::pair("new@update-1800000000", "new"),
                                         std::pair("old@current", "old")));
  story_.Answer(story_.Node("a"));
  story_.Answer(story_.Node("b"));
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(story_.state.ready, 2U);
  EXPECT_EQ(ReportOf(story_.state, story_.inputs).prepared, 2U);
  story_.Answer(story_.Node("c"));
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Activate");
  ASSERT_TRUE(story_.state.predicted);
  EXPECT_EQ(story_.state.predicted->hit_permille, 600U);
  EXPECT_THAT(story_.Updated(), IsEmpty());
}

TEST_F(Rollout, GoesOverNodeByNodeInTheOrderOfNames) {
  Prepare();
  story_.Step();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  EXPECT_FALSE(story_.Step());  // until it follows
  story_.AllAnswer();
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.current, "new");
}

TEST_F(Rollout, AShareOfNodesIsRoundedUp) {
  knobs().max_unavailable = {.amount = 34, .percent = true};
  Prepare();
  story_.Step();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
}

TEST_F(Rollout, AllAtOnceMindsNeitherPartitionNorMaxUnavailable) {
  knobs().all_at_once = true;
  knobs().partition = 2;
  Prepare();
  story_.Step();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b", "c"));
}

TEST_F(Rollout, WaitsForAnEpochsEndBeforeEachBatch) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  story_.Read(2, 9);
  Prepare();
  EXPECT_FALSE(story_.Step());
  EXPECT_EQ(story_.Reason(), "EpochAwaited");
  ++story_.inputs.streams[0].pass;
  EXPECT_FALSE(story_.Step());
  ++story_.inputs.streams[1].pass;
  story_.Step();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  ++story_.inputs.streams[0].pass;  // before the batch has gone over: it does not count
  ++story_.inputs.streams[1].pass;
  story_.AllAnswer();
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  ++story_.inputs.streams[0].pass;
  story_.inputs.streams.pop_back();  // one that ends is not waited for
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
}

TEST_F(Rollout, RestsAtThePartition) {
  knobs().partition = 1;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Activate");
  EXPECT_EQ(story_.Reason(), "Partitioned");
  EXPECT_EQ(story_.state.current, "old");
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
  knobs().partition = 0;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, PausedNothingGoesOver) {
  Prepare();
  story_.Step();
  knobs().paused = true;
  story_.Run();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  EXPECT_EQ(story_.Reason(), "Paused");
  knobs().paused = false;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, PausedNodesPrepareAllTheSame) {
  knobs().paused = true;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(ReportOf(story_.state, story_.inputs).prepared, 3U);
}

TEST_F(Rollout, WorsePredictedWaitsForAcknowledgement) {
  story_.predicted["new"] = 604;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
  story_.inputs.now += 10'000;
  EXPECT_EQ(story_.Reason(), "PredictedWorse");  // no node is waited for
  knobs().acknowledge = true;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, HalfAPercentWorseIsNotWorse) {
  story_.predicted["new"] = 603;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, ANodeThatCannotDeriveItStopsIt) {
  story_.errors["c"] = "out of memory";
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "PrepareFailed");
  EXPECT_EQ(story_.state.failed->message, "node c could not derive it: out of memory");
  EXPECT_THAT(OrdersOf(story_.state, story_.inputs).trials, IsEmpty());
}

TEST_F(Rollout, StoppedIsTriedAgainWhenRestarted) {
  story_.errors["c"] = "out of memory";
  story_.Run();
  EXPECT_FALSE(story_.Step());
  story_.errors.clear();
  knobs().restarted_at = "2027-01-15T08:00:00Z";
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.current, "new");
  EXPECT_FALSE(story_.state.failed);
}

TEST_F(Rollout, ACompleteOneThatIsRestartedIsDerivedAnew) {
  story_.Run();
  story_.predicted["new"] = 200;
  story_.inputs.now += 60;
  knobs().restarted_at = "2027-01-15T08:00:00Z";
  ASSERT_TRUE(story_.Step());
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_THAT(OrdersOf(story_.state, story_.inputs).trials,
              ElementsAre(std::pair("new@update-1800000060", "new")));
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.predicted->hit_permille, 800U);
}

TEST_F(Rollout, WhatIsInForceStaysSoWhenItCannotBeDerivedAnew) {
  story_.Run();
  story_.errors["c"] = "out of memory";
  knobs().restarted_at = "2027-01-15T08:00:00Z";
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.current, "new");
  ASSERT_TRUE(story_.state.failed);
  EXPECT_EQ(story_.state.failed->revision, "new");
  const RolloutReport report = ReportOf(story_.state, story_.inputs);
  EXPECT_EQ(report.reason, "PrepareFailed");
  EXPECT_THAT(report.message, HasSubstr("new is in force; it could not be derived again: node c"));
  story_.errors.clear();
  knobs().restarted_at = "2027-01-15T09:00:00Z";
  story_.Run();
  EXPECT_EQ(story_.Reason(), "Complete");
}

TEST_F(Rollout, FromAStateThatNoStepLeadsToItBeginsAnew) {
  const ActivatedNodes other{.revision = "other", .up_to = "c"};
  const ActivatedNodes update{.revision = "new", .up_to = "b"};
  for (const auto phase : {RolloutPhase::kActivate, RolloutPhase::kObserve}) {
    for (const auto& activated : {std::optional<ActivatedNodes>(), std::optional(other)}) {
      story_.state.phase = phase;
      story_.state.revision = "new";
      story_.state.activated = activated;
      story_.state.marks.emplace();
      story_.Step();
      EXPECT_EQ(story_.Phase(), "Prepare");
      EXPECT_FALSE(story_.state.activated);
    }
  }
  for (const auto phase : {RolloutPhase::kGoBack, RolloutPhase::kStopped}) {
    story_.state.phase = phase;
    story_.state.activated = update;
    story_.Step();
    EXPECT_EQ(story_.Phase(), "Prepare");
    EXPECT_FALSE(story_.state.activated);
  }
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, NodesThatDoNotAnswerAreNamedAfterTheDeadline) {
  story_.Step();
  story_.Answer(story_.Node("a"));
  story_.Step();
  story_.inputs.now += 600;
  EXPECT_EQ(story_.Reason(), "Preparing");
  story_.inputs.now += 1;
  const RolloutReport report = ReportOf(story_.state, story_.inputs);
  EXPECT_EQ(report.reason, "ProgressDeadlineExceeded");
  EXPECT_FALSE(report.progressing);
  EXPECT_THAT(report.message, HasSubstr("b, c"));
  story_.Answer(story_.Node("b"));  // one more begins the time anew
  story_.Step();
  EXPECT_EQ(story_.Reason(), "Preparing");
}

TEST_F(Rollout, APauseDoesNotCountForTheDeadline) {
  Prepare();
  story_.Step();
  knobs().paused = true;
  story_.Step();
  story_.inputs.now += 10'000;
  knobs().paused = false;
  story_.Step();
  EXPECT_EQ(story_.Reason(), "NodesChange");
  story_.inputs.now += 601;
  EXPECT_EQ(story_.Reason(), "ProgressDeadlineExceeded");
}

TEST_F(Rollout, TakenBackAllNodesGoBackEvenWhenPaused) {
  Prepare();
  story_.Step();
  story_.AllAnswer();
  story_.inputs.revision = "old";
  knobs().paused = true;
  story_.Step();
  EXPECT_EQ(story_.Phase(), "GoBack");
  story_.Step();
  EXPECT_EQ(story_.Phase(), "GoBack");  // a follows the update still
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.current, "old");
  EXPECT_EQ(story_.Node("a").revision, "old");
}

TEST_F(Rollout, AnotherUpdateBeginsAnewAndNodesStayWithTheAbandonedOne) {
  Prepare();
  story_.Step();
  story_.AllAnswer();
  story_.StepUntilStill();
  story_.AllAnswer();
  story_.inputs.revision = "other";
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(OrdersOf(story_.state, story_.inputs).update, "new");
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
  story_.AllAnswer();
  story_.Step();
  story_.Step();
  EXPECT_EQ(OrdersOf(story_.state, story_.inputs).update, "other");
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  story_.Run();
  EXPECT_EQ(story_.state.current, "other");
}

TEST_F(Rollout, WhoComesPreparesFirstAndFollowsIfItsNameIsAmongThem) {
  Prepare();
  story_.Step();
  story_.AllAnswer();
  story_.inputs.nodes.insert(story_.inputs.nodes.begin(),
                             {.name = "A", .revision = "old", .planned = true});
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  story_.Answer(story_.Node("A"));
  EXPECT_THAT(story_.Updated(), ElementsAre("A", "a"));
}

TEST_F(Rollout, ANodeThatLeavesIsNotWaitedFor) {
  story_.Step();
  story_.Answer(story_.Node("a"));
  story_.Answer(story_.Node("b"));
  story_.StepUntilStill();
  story_.inputs.nodes.pop_back();
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Prepare") << "what was derived is for other nodes";
  story_.AllAnswer();
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Activate");
}

TEST_F(Rollout, WithoutNodesItWaitsInEveryPhase) {
  story_.Read(1, 4);
  for (const char* phase : {"Prepare", "Activate", "Observe"}) {
    while (story_.Phase() != phase) {
      story_.Step();
      story_.AllAnswer();
    }
    const auto nodes = std::exchange(story_.inputs.nodes, {});
    story_.StepUntilStill();
    EXPECT_EQ(story_.Phase(), phase);
    EXPECT_EQ(story_.Reason(), "NotPlaced");
    EXPECT_EQ(story_.state.current, "old");
    story_.inputs.nodes = nodes;
  }
  story_.inputs.revision = "old";
  story_.inputs.nodes.clear();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << "nobody has to go back";
}

TEST_F(Rollout, ABatchHasGoneOverWhenItHasDerivedItsPlan) {
  Prepare();
  story_.Step();
  story_.Node("a").planned = false;
  story_.AllAnswer();
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  story_.inputs.now += 601;
  const RolloutReport report = ReportOf(story_.state, story_.inputs);
  EXPECT_EQ(report.reason, "ProgressDeadlineExceeded");
  EXPECT_THAT(report.message, HasSubstr("0 have derived the newest plan"));
  EXPECT_THAT(report.message, HasSubstr(": a"));
  story_.Node("a").planned = true;
  story_.StepUntilStill();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
}

// Nodes report a trial for a while after it is asked for no more.
TEST_F(Rollout, AnotherTryDoesNotGoByReportsOfTheOneBefore) {
  story_.errors["b"] = "out of memory";
  story_.Run();
  ASSERT_EQ(story_.Reason(), "PrepareFailed");
  story_.errors.clear();
  ++story_.inputs.now;
  knobs().restarted_at = "2027-01-15T08:00:01Z";
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Prepare") << story_.Reason();
  EXPECT_EQ(ReportOf(story_.state, story_.inputs).prepared, 0U);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, ANodeThatComesAndCannotPrepareEndsIt) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  Prepare();
  story_.EndPass();
  story_.Run();
  ASSERT_THAT(story_.Updated(), ElementsAre("a"));
  story_.inputs.nodes.insert(story_.inputs.nodes.begin(),
                             {.name = "Z", .revision = "old", .planned = true});
  story_.errors["Z"] = "out of memory";
  story_.Answer(story_.Node("Z"));
  knobs().paused = true;
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Activate") << "paused, it neither goes on nor back";
  knobs().paused = false;
  story_.Step();
  EXPECT_EQ(story_.Phase(), "GoBack");
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "PrepareFailed");
  EXPECT_THAT(story_.state.failed->message, HasSubstr("node Z"));
  EXPECT_EQ(story_.Node("a").revision, "old");
}

TEST_F(Rollout, ANodeThatComesWhileItIsObservedAndCannotPrepareEndsIt) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.nodes.push_back({.name = "d", .revision = "old", .planned = true});
  story_.errors["d"] = "out of memory";
  story_.Answer(story_.Node("d"));
  story_.Step();
  EXPECT_EQ(story_.Phase(), "GoBack");
  EXPECT_EQ(story_.state.failed->reason, "PrepareFailed");
}

TEST_F(Rollout, NothingIsObservedBeforeAllHaveDerivedThePlan) {
  Prepare();
  story_.Node("c").planned = false;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Activate");
  story_.Node("c").planned = true;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

// Nodes follow "new", which the spec asks for no more.

class Abandoned : public Rollout {
 protected:
  Abandoned() {
    story_.Read(1, 4);
    story_.Run();
    EXPECT_EQ(story_.Phase(), "Observe");
    story_.predicted["other"] = 900;
    story_.inputs.revision = "other";
    story_.Step();
  }
};

TEST_F(Abandoned, NodesStayWithItWhileTheNextIsDerived) {
  EXPECT_EQ(OrdersOf(story_.state, story_.inputs).update, "new");
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message, HasSubstr("3 follow new meanwhile"));
}

TEST_F(Abandoned, NodesGoBackWhereTheNextIsHeld) {
  story_.Run();
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
  EXPECT_EQ(story_.Node("a").revision, "old");
}

TEST_F(Abandoned, NodesGoBackWhereTheNextIsPaused) {
  knobs().paused = true;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(story_.Node("a").revision, "old");
}

TEST_F(Abandoned, NodesGoBackWhereOneDoesNotAnswerInTime) {
  story_.Step();
  story_.inputs.now += 601;
  story_.Step();
  EXPECT_THAT(story_.Updated(), IsEmpty());
}

TEST_F(Abandoned, WhatANodeThatStaysWithItReadsIsNotComparedWith) {
  story_.Run();
  ASSERT_EQ(story_.Reason(), "PredictedWorse");
  story_.Node("b").revision = "new";
  for (int pass = 0; pass < 2; ++pass) {
    story_.StepUntilStill();
    story_.EndPass();
  }
  story_.StepUntilStill();
  story_.Node("b").revision = "old";
  knobs().acknowledge = true;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.previous);
}

TEST_F(Rollout, TheForecastOfJobsThatNobodyReadsSaysNothing) {
  story_.Step();
  story_.AllAnswer();
  for (RolloutNode& node : story_.inputs.nodes) {
    for (TrialReport& trial : node.trials)
      trial.all = {};
  }
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Activate");
  EXPECT_FALSE(story_.state.predicted);
}

TEST(Phases, HaveNames) {
  for (const char* name : {"Prepare", "Activate", "Observe", "Complete", "GoBack", "Stopped"}) {
    const auto phase = PhaseOfName(name);
    ASSERT_TRUE(phase);
    EXPECT_EQ(PhaseName(*phase), name);
  }
  EXPECT_FALSE(PhaseOfName("prepare"));
}

TEST(Failures, HaveReasons) {
  EXPECT_TRUE(IsFailureReason("BelowPredicted"));
  EXPECT_FALSE(IsFailureReason(""));
  EXPECT_FALSE(IsFailureReason("Below Predicted"));
}

TEST(Batch, IsAtLeastOneNode) {
  EXPECT_EQ(BatchOf({.amount = 25, .percent = true}, 0), 1U);
  EXPECT_EQ(BatchOf({.amount = 25, .percent = true}, 4), 1U);
  EXPECT_EQ(BatchOf({.amount = 25, .percent = true}, 5), 2U);
  EXPECT_EQ(BatchOf({.amount = 3, .percent = false}, 5), 3U);
}

}  // namespace
}  // namespace optcache::coordination
