#include "coordinator/internal/rollout_observers.h"

#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

TEST_F(Rollout, ItsObserversAreKeptAsText) {
  story_.Read(1, 4);
  story_.inputs.memory = 0xabc00000;
  const internal::Observers observers = internal::ObserversOf(story_.inputs);
  EXPECT_EQ(observers.memory, 0xabc00000U);
  EXPECT_EQ(internal::ObserversIn(internal::TextOf(observers)), observers);
  EXPECT_EQ(internal::ObserversIn("00c2e5a1b7d40f93").nodes, "00c2e5a1b7d40f93");
  EXPECT_EQ(internal::ObserversIn("00c2e5a1b7d40f93").jobs, "");
  EXPECT_EQ(internal::ObserversIn(""), internal::Observers());
}

// A node that starts again holds nothing, and its share is read again: by the limits that a user
// sets this would be the update's fault.
TEST_F(Rollout, AnEpochInWhichANodeStartsAgainDoesNotCount) {
  story_.Read(1, 4);
  ReadOnBefore();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  ASSERT_TRUE(story_.state.previous);
  story_.EndPass();
  story_.costs["new"] = 900;  // the epoch in which it dies
  story_.Node("b").member = 77;
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.costs["new"] = 400;
  ReadAWholePass();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, ANodeThatStartsAgainDoesNotSaveWhatIsWorse) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  story_.Node("b").member = 77;
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, WhatWasObservedOfOtherNodesIsNotComparedWith) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  story_.inputs.nodes.pop_back();
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

// All of it may be read from the source, by any revision.
TEST_F(Rollout, TheFirstPassOfAJobIsNotComparedWith) {
  story_.inputs.revision = "old";
  story_.Read(1, 0);
  story_.StepUntilStill();
  story_.costs["old"] = 1000;
  story_.EndPass();
  story_.predicted["new"] = story_.costs["new"] = 640;
  story_.inputs.revision = "new";
  knobs().acknowledge = true;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.previous);
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

// A Dataset is placed where it is read: on a node that has started again, when its jobs have found
// it.
TEST_F(Rollout, ANodeThatGoesAndComesBackDoesNotSaveWhatIsWorse) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  RolloutNode last = story_.inputs.nodes.back();
  story_.inputs.nodes.pop_back();
  story_.Run();
  last.member = 77;
  story_.inputs.nodes.push_back(last);
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

// The other one has read without it meanwhile.
TEST_F(Rollout, AJobThatPausesWhileItIsObservedIsNotComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  const ReadingStream last = story_.inputs.streams.back();
  story_.inputs.streams.pop_back();
  story_.Run();
  story_.inputs.streams.push_back(last);
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

TEST_F(Rollout, AJobThatPausesBeforeDoesNotSaveWhatIsWorse) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.predicted["new"] = story_.costs["new"] = 640;
  knobs().acknowledge = true;
  ReadOnBefore();
  Prepare();
  const ReadingStream last = story_.inputs.streams.back();
  story_.inputs.streams.pop_back();
  story_.StepUntilStill();
  ASSERT_EQ(story_.Phase(), "Activate");
  story_.inputs.streams.push_back(last);
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

// Nothing is known of what the other job reads by the revision in force.
TEST_F(Rollout, APartOfTheJobsIsNotComparedWithAllOfThem) {
  story_.Read(1, 4);
  story_.costs["old"] = 0;
  story_.EndPass();
  story_.Read(2, 0);
  story_.predicted["new"] = story_.costs["new"] = 640;
  knobs().acknowledge = true;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.previous);
}

// A node keeps its member id where it starts again while no operator leads.
TEST_F(Rollout, AStartThatNoLeaderSawIsAnotherLife) {
  const internal::Observers before = internal::ObserversOf(story_.inputs);
  ++story_.Node("b").incarnation;
  const internal::Observers after = internal::ObserversOf(story_.inputs);
  EXPECT_NE(after.incarnations, before.incarnations);
  EXPECT_EQ(after.nodes, before.nodes);
}

// A leader that has begun just now hears of nodes one by one.
TEST_F(Rollout, ANodeThatANewLeaderHasNotHeardOfYetHasNotGone) {
  story_.Read(1, 4);
  ReadOnBefore();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  const RolloutState before = story_.state;
  ASSERT_TRUE(before.previous);
  const RolloutNode last = story_.inputs.nodes.back();
  story_.inputs.nodes.pop_back();
  story_.inputs.all_known = false;
  story_.costs["new"] = 900;
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.state.previous, before.previous);
  EXPECT_EQ(story_.state.sums, before.sums);
  EXPECT_EQ(story_.state.changes, 0U);
  story_.inputs.nodes.push_back(last);
  story_.inputs.all_known = true;
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
}

TEST_F(Rollout, ANodeThatANewLeaderHasNotHeardOfYetMovesNoPartition) {
  knobs().partition = 1;
  story_.Run();
  ASSERT_EQ(story_.Reason(), "Partitioned");
  const auto activated = story_.state.activated;
  story_.inputs.nodes.pop_back();
  story_.inputs.all_known = false;
  story_.Run();
  EXPECT_EQ(story_.state.activated, activated);
}

// The epoch that it shares with the revision before says nothing of the update.
TEST_F(Rollout, EpochsCountWhenANodeThatStartedAgainFollowsTheUpdate) {
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  story_.EndPass();
  ASSERT_EQ(story_.Phase(), "Observe");
  ++story_.Node("b").incarnation;
  story_.Node("b").revision = "old";
  story_.Step();
  story_.costs["new"] = 900;
  story_.EndPass();
  story_.EndPass();
  story_.StepUntilStill();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.sums);
  EXPECT_TRUE(ReportOf(story_.state, story_.inputs).message.starts_with("2 of 3 nodes follow new"));
  story_.costs["new"] = 400;
  story_.Run();
  ReadAWholePass();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, ANodeThatNeverFollowsHoldsNoObservationUpForEver) {
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  ++story_.Node("b").incarnation;
  story_.Node("b").revision = "old";
  story_.StepUntilStill();
  story_.inputs.now += story_.inputs.knobs.progress_deadline_seconds + 1;
  story_.StepUntilStill();
  EXPECT_EQ(story_.Reason(), "ProgressDeadlineExceeded");
  story_.EndPass();
  story_.EndPass();
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WhatWasObservedOfJobsBeforeGoesWhenOthersArePredicted) {
  const auto forgets = [this] { return ReportOf(story_.state, story_.inputs).forgets; };
  story_.inputs.is_tried = true;
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  ReadAWholePass();
  ASSERT_EQ(story_.Phase(), "Complete");
  story_.inputs.streams.clear();
  story_.inputs.passes.clear();
  EXPECT_FALSE(forgets());  // no other job reads
  story_.Read(2, 0);
  story_.Run();
  EXPECT_TRUE(forgets());
  story_.EndPass();
  EXPECT_FALSE(forgets());
}

// Of the revision in force, by a job that has gone, long ago.
TEST_F(Rollout, WhatWasObservedOfJobsOfThenIsNotComparedWith) {
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  story_.costs["new"] = 0;
  ReadAWholePass();
  ASSERT_EQ(story_.Phase(), "Complete");
  ASSERT_TRUE(story_.state.previous);
  story_.inputs.streams.clear();
  story_.inputs.passes.clear();
  story_.Read(2, 0);
  story_.inputs.revision = "other";
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
  EXPECT_TRUE(story_.state.uncompared);
}

// Jobs share what one of them reads: the one that stays reads more of the source, by any plan.
TEST_F(Rollout, WhatWasObservedOfOtherJobsIsNotComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  ReadOnBefore();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  ASSERT_TRUE(story_.state.previous);
  story_.costs["new"] = 900;
  story_.inputs.streams.pop_back();
  for (int pass = 0; pass < 2; ++pass) {
    story_.Run();
    story_.EndPass();
  }
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
  EXPECT_TRUE(story_.state.uncompared);
}

// --- Of what a figure is ------------------------------------------------------------------------

TEST_F(Rollout, MemoryThatIsRoundedInAnotherWayIsTheSame) {
  internal::Observers one;
  internal::Observers other;
  one.memory = 6400;
  other.memory = 6500;
  EXPECT_TRUE(internal::AreAlike(one, other));
  EXPECT_TRUE(internal::HoldAlike(one, other));
  other.memory = 6600;
  EXPECT_FALSE(internal::AreAlike(one, other));
  EXPECT_FALSE(internal::HoldAlike(one, other));
}

// Another Dataset takes it: fewer hits are no fault of the update.
TEST_F(Rollout, AForecastForOtherMemoryIsNotComparedWith) {
  story_.inputs.memory = 6400;
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.EndPass();
  story_.Step();
  EXPECT_TRUE(ReportOf(story_.state, story_.inputs).predicted);
  story_.inputs.memory = 3200;
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).predicted);
  story_.costs["new"] = 700;
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WhatWasObservedWithOtherMemoryIsNotComparedWith) {
  story_.inputs.memory = 6400;
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  ASSERT_TRUE(story_.state.previous);
  story_.inputs.memory = 3200;
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

TEST_F(Rollout, MemoryThatGoesAndComesBackDoesNotSaveWhatIsWorse) {
  story_.inputs.memory = 6400;
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  story_.inputs.memory = 3200;
  story_.Run();
  story_.inputs.memory = 6400;
  story_.Run();
  EXPECT_EQ(story_.state.changes, 2U);
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

// A new leader hears of a rank later, whose node has started again.
TEST_F(Rollout, ARankThatIsHeardOfLaterDoesNotSaveWhatIsWorse) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(LetWhatIsWorseBegin());
  story_.inputs.streams[0].gathering = true;
  story_.Run();
  story_.inputs.streams[0].gathering = false;
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

// By "Pin", "LRU" or "None", of which no plan says what an epoch is worth.
TEST_F(Rollout, AForecastForOtherJobsIsNotComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.pop_back();
  story_.costs["new"] = 700;
  ObserveWhatIsWorse();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WhatIsCountedOfSeveralJobsIsNotWhatTheNextIsComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.pop_back();
  ObserveWhatIsWorse();
  ASSERT_EQ(story_.Phase(), "Complete");
  EXPECT_FALSE(story_.state.previous);
}

// They shared what they read: the one that stays reads more of the source by any revision.
TEST_F(Rollout, AnEpochThatAJobHasSharedIsNotWhatTheUpdateIsComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  ReadOnBefore([&] {
    story_.inputs.streams.pop_back();
    story_.StepUntilStill();
  });
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.previous);
}

TEST_F(Rollout, AnEpochInWhichANodeStartedIsNotWhatTheUpdateIsComparedWith) {
  story_.Read(1, 4);
  ReadOnBefore([&] {
    ++story_.Node("b").incarnation;
    story_.StepUntilStill();
    story_.costs["old"] = 1000;
    story_.EndPass();
  });
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_FALSE(story_.state.previous);
}

TEST_F(Rollout, AJobThatBeginsEndsNoEpochOfTheOthersThatIsComparedWith) {
  story_.Read(1, 4);
  ReadOnBefore([&] {
    story_.Read(2, 0);
    story_.StepUntilStill();
    story_.EndPass();
    story_.EndPass();
  });
  story_.Run();
  ASSERT_TRUE(story_.state.previous);
  EXPECT_EQ(story_.state.disturbed,
            (std::vector<PassMark>{{.stream = 1, .pass = 6}, {.stream = 2, .pass = 0}}));
}

// Its epochs before the restart were longer ago, and it counts them from 0 again.
TEST_F(Rollout, AJobThatStartsAgainIsNotDisturbedUpToItsEpochOfBefore) {
  story_.inputs.revision = "old";
  story_.Read(1, 50);
  story_.StepUntilStill();
  ASSERT_EQ(story_.state.disturbed, (std::vector<PassMark>{{.stream = 1, .pass = 50}}));
  story_.inputs.streams[0].pass = 0;
  story_.StepUntilStill();
  story_.EndPass();
  story_.EndPass();
  story_.inputs.revision = "new";
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_TRUE(story_.state.previous);
}

// The job of a rollout is started again, and reads this list of samples, under the name that it
// had: in its pass 0 nothing newer is known of the revision in force when a worse one is asked for.
class StartedAgain : public Rollout {
 protected:
  void OnManifest(const char* manifest) {
    story_.Read(1, 4);
    story_.inputs.streams[0].manifest = "one";
    ReadOnBefore();
    ObserveWhatIsWorse();
    ASSERT_EQ(story_.state.current, "new");
    ReadingStream& stream = story_.inputs.streams[0];
    stream.id = 2;
    stream.pass = 0;
    stream.manifest = manifest;
    story_.StepUntilStill();
    story_.predicted["other"] = story_.costs["other"] = 440;
    knobs().acknowledge = true;
    story_.inputs.revision = "other";
    story_.Run();
    ASSERT_EQ(story_.Phase(), "Observe");
    ObserveWhatIsWorse();
  }
};

TEST_F(StartedAgain, ItIsComparedWithWhatItReadBefore) {
  OnManifest("one");
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(StartedAgain, OnAnotherListOfSamplesItIsNot) {
  OnManifest("another");
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

}  // namespace
}  // namespace optcache::coordination
