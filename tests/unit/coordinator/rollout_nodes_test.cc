// What nodes have derived, and from what.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/rollout.h"
#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Rollout, ADifferentDigestStopsItAndNamesTheNode) {
  story_.odd_digests["b"] = "0123456789abcdef";
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  ASSERT_TRUE(story_.state.failed);
  EXPECT_EQ(story_.state.failed->reason, "DigestMismatch");
  EXPECT_EQ(story_.state.failed->revision, "new");
  EXPECT_THAT(story_.state.failed->message, HasSubstr("node b derived 0123456789"));
  EXPECT_THAT(story_.Updated(), IsEmpty());
  EXPECT_EQ(story_.state.current, "old");
}

// Nothing can be said of the revision in force then, and so nothing speaks against the update.
TEST_F(Rollout, WhereTheRevisionInForceCannotBeDerivedTheUpdateIsNotHeld) {
  story_.predicted["new"] = 900;
  for (const char* node : {"a", "b", "c"})
    story_.present_errors[node] = "300 ordered streams";
  knobs().paused = true;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Prepare");
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message,
              HasSubstr("compared without node a, which could not derive old: 300 ordered"));
  knobs().paused = false;
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Activate");
}

TEST_F(Rollout, OneNodeThatCanDeriveBothIsEnoughToHoldIt) {
  story_.predicted["new"] = 900;
  story_.present_errors["a"] = "out of memory";
  story_.Run();
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
  EXPECT_THAT(
      ReportOf(story_.state, story_.inputs).message,
      HasSubstr("than with old, compared without node a, which could not derive old: out of"));
}

// A job that comes or goes meanwhile: nodes derived from different inputs, whose digests differ.
TEST_F(Rollout, NodesThatWentByOtherInputsDeriveItAgain) {
  story_.odd_digests["b"] = "another";
  story_.Step();
  const auto first = OrdersOf(story_.state, story_.inputs).trials;
  story_.AllAnswer();
  for (TrialReport& trial : story_.Node("b").trials)
    trial.planned = {1, 2};
  story_.Step();
  EXPECT_EQ(story_.Phase(), "Prepare");
  const auto again = OrdersOf(story_.state, story_.inputs).trials;
  ASSERT_EQ(again.size(), 2U);
  EXPECT_NE(again[0].first, first[0].first);
  EXPECT_NE(again[1].first, first[1].first);
  story_.Run();  // from the same inputs now
  EXPECT_EQ(story_.Reason(), "DigestMismatch");
}

TEST_F(Rollout, WhereInputsChangeAllTheTimeWhatIsEqualOfThemIsCompared) {
  story_.odd_digests["b"] = "another";
  story_.Step();
  for (int tries = 0; tries < 10 && story_.Phase() == "Prepare"; ++tries) {
    story_.AllAnswer();
    for (TrialReport& trial : story_.Node("b").trials)
      trial.planned = {1, 2};
    story_.Step();
  }
  EXPECT_EQ(story_.Phase(), "Activate");
  EXPECT_EQ(story_.state.tries, 3U);
}

// Their pods have names that nobody chooses.
TEST_F(Rollout, AsManyStayBehindWhoeverComesOrGoes) {
  knobs().partition = 1;
  story_.Run();
  ASSERT_EQ(story_.Reason(), "Partitioned");
  story_.inputs.nodes.pop_back();
  story_.Run();
  EXPECT_EQ(story_.Reason(), "Partitioned");
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  story_.inputs.nodes.insert(story_.inputs.nodes.begin(), {.name = "A", .revision = "old"});
  story_.Node("A").planned = true;
  story_.Run();
  EXPECT_EQ(story_.Reason(), "Partitioned");
  EXPECT_THAT(story_.Updated(), ElementsAre("A", "a"));
  knobs().partition = 3;
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  knobs().partition = 0;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

// Its epochs are of two revisions, and fewer hits are no fault of the update.
TEST_F(Rollout, WhatIsCountedWhileANodeDoesNotFollowIsNotCompared) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  ++story_.Node("b").incarnation;
  story_.Node("b").revision = "old";
  story_.StepUntilStill();
  story_.inputs.now += knobs().progress_deadline_seconds + 1;
  for (int pass = 0; pass < 2; ++pass) {
    story_.StepUntilStill();
    story_.EndPass();
  }
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
  EXPECT_TRUE(story_.state.uncompared);
  EXPECT_FALSE(story_.state.previous);
}

TEST_F(Rollout, TheLastNodeThatStartsAgainIsAwaitedAsTheFirstIs) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  for (int start = 0; start < 3; ++start) {
    ++story_.Node("b").incarnation;
    story_.Node("b").revision = "old";
    story_.StepUntilStill();
  }
  ASSERT_EQ(story_.state.changes, 3U);
  story_.EndPass();
  story_.EndPass();
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.sums);
  story_.Run();
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, ARestAtThePartitionDoesNotCountForTheEpochDeadline) {
  knobs().at_epoch_boundary = true;
  knobs().partition = 1;
  story_.Read(1, 4);
  Prepare();
  for (int pass = 0; pass < 2; ++pass) {
    story_.EndPass();
    story_.Run();
  }
  ASSERT_EQ(story_.Reason(), "Partitioned");
  story_.inputs.now += 2 * knobs().epoch_deadline_seconds;
  knobs().partition = 0;
  story_.Run();
  EXPECT_EQ(story_.Reason(), "EpochAwaited");
}

}  // namespace
}  // namespace optcache::coordination
