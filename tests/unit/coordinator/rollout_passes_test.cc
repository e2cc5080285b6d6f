// What a rollout makes of streams and their passes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/rollout.h"
#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// "old" reads nothing of the source.
class AfterOneThatReadsNothing : public Rollout {
 protected:
  void Observe(std::uint64_t reads) {
    story_.predicted = story_.costs = {{"old", 0}, {"new", 0}};
    story_.Read(1, 4);
    ReadOnBefore();
    story_.costs["new"] = reads;
    story_.Run();
    ASSERT_EQ(story_.state.previous->store_bytes_per_read_tenths, 0U);
    ReadAWholePass();
  }
};

TEST_F(AfterOneThatReadsNothing, HalfAPercentOfTheReadsIsNotWorse) {
  Observe(5);
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(AfterOneThatReadsNothing, MoreThanThatIs) {
  Observe(6);
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, ObservesWholePassesThatBeginLater) {
  story_.Read(1, 4);
  knobs().after = 2;
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  EXPECT_EQ(story_.state.current, "old");
  story_.EndPass();  // had begun before
  story_.Run();
  EXPECT_EQ(story_.state.sums->passes, 0U);
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.state.sums->passes, 1U);
  EXPECT_EQ(ReportOf(story_.state, story_.inputs).observed->numbers.hit_permille, 600U);
  EXPECT_EQ(story_.state.since, "pass 6 of vision/job1/imagenet/train");
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WhatIsInForceIsPredictedOnceMoreFromWhatLiesThereNow) {
  story_.inputs.is_tried = true;
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  story_.EndPass();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.predicted["new"] = 410;
  story_.EndPass();
  story_.StepUntilStill();
  ASSERT_EQ(story_.Phase(), "Complete") << story_.Reason();
  ASSERT_TRUE(story_.state.forecast);
  EXPECT_THAT(OrdersOf(story_.state, story_.inputs).trials,
              ElementsAre(Pair(JobsTrial(story_.state), "new")));
  EXPECT_FALSE(story_.state.predicted) << "Prepare's was of what lay there before";
  story_.Run();
  EXPECT_EQ(story_.state.predicted->hit_permille, 590U);
  EXPECT_THAT(OrdersOf(story_.state, story_.inputs).trials, IsEmpty());
  EXPECT_FALSE(story_.Step()) << "once for the same jobs";
}

TEST_F(Rollout, BelowPredictedGoesBackAndStops) {
  story_.Read(1, 4);
  story_.costs["new"] = 460;  // .06 more than predicted
  story_.Run();
  story_.EndPass();
  story_.EndPass();
  story_.Step();  // counts
  story_.Step();
  EXPECT_EQ(story_.Phase(), "GoBack");
  EXPECT_THAT(story_.Updated(), IsEmpty());
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
  EXPECT_THAT(story_.state.failed->message, HasSubstr("0.540"));
  EXPECT_THAT(story_.state.failed->message, HasSubstr("0.600"));
  EXPECT_EQ(story_.Node("a").revision, "old");
}

TEST_F(Rollout, WhatThePlanInForcePredictedCountsMoreThanTheForecast) {
  story_.Read(1, 4);
  story_.costs["new"] = 460;
  story_.Run();
  story_.EndPass();
  story_.EndPass();
  story_.inputs.passes.back().sum.planned_reads = 950;
  story_.inputs.passes.back().sum.planned_misses = 437;  // .46 of them
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WorseThanBeforeGoesBackAndStops) {
  story_.Read(1, 4);
  story_.predicted["new"] = 640;
  story_.costs["new"] = 640;  // .067 more than before
  knobs().acknowledge = true;
  ReadOnBefore();
  story_.Run();
  ASSERT_TRUE(story_.state.previous);
  EXPECT_EQ(story_.state.previous->store_bytes_per_read_tenths, 600U);
  ReadAWholePass();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, ReadsPastTheNodesAreNoHits) {
  story_.Read(1, 4);
  story_.Run();
  story_.EndPass();
  story_.EndPass();
  story_.inputs.passes.back().sum.hits -= 100;
  story_.Run();
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
}

TEST_F(Rollout, PausedPassesAreCountedAndNotJudged) {
  story_.Read(1, 4);
  story_.costs["new"] = 1000;
  story_.Run();
  knobs().paused = true;
  ReadAWholePass();
  EXPECT_EQ(story_.Phase(), "Observe");
  EXPECT_EQ(story_.state.sums->passes, 1U);
  knobs().paused = false;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
}

TEST_F(Rollout, WhenAllJobsThatWereCountedOnHaveEndedThoseThatReadAreObserved) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.clear();
  story_.Read(2, 0);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.clear();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, StreamsThatMayNotHaveBeenHeardYetAreWaitedFor) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  Prepare();
  story_.inputs.streams.clear();  // another leader
  story_.inputs.all_known = false;
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  story_.Read(1, 3);  // of the slower of its ranks
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  story_.inputs.streams[0].pass = 4;
  story_.inputs.all_known = true;
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  ++story_.inputs.streams[0].pass;
  story_.Run();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
}

TEST_F(Rollout, ObserveIsNotOverBeforeStreamsAreKnown) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.clear();
  story_.inputs.all_known = false;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.inputs.all_known = true;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, JobsOfOnePassAreObserved) {
  story_.Read(1, 0);
  story_.costs["new"] = 1000;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.clear();
  story_.Read(2, 0);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.inputs.passes.back().sum.planned_reads = RolloutStory::kReads;
  story_.inputs.passes.back().sum.planned_misses = 400;
  story_.inputs.streams.clear();  // it has ended with its first pass
  story_.Read(3, 0);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
}

TEST_F(Rollout, AStreamThatBeginsAgainIsNotWaitedForUpToItsMark) {
  story_.Read(1, 7);
  story_.Run();
  story_.inputs.streams[0].pass = 0;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.state.since, "");
  EXPECT_EQ(story_.state.marks->front().pass, 0U);
}

// A job that hangs, or starts again in the same epoch each time.
TEST_F(Rollout, AJobThatEndsNoEpochHoldsARolloutUpForOneDeadline) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  story_.Read(2, 9);
  Prepare();
  ++story_.inputs.streams[1].pass;
  story_.inputs.now += knobs().epoch_deadline_seconds;
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message,
              HasSubstr("begin another epoch: vision/job1/imagenet/train"));
  ++story_.inputs.now;
  story_.Run();
  EXPECT_THAT(story_.Updated(), ElementsAre("a"));
  // From now on the other job's epochs are enough.
  for (const std::size_t nodes : {2U, 3U}) {
    EXPECT_THAT(ReportOf(story_.state, story_.inputs).message,
                HasSubstr("begin another epoch: vision/job2/imagenet/train"));
    ++story_.inputs.streams[1].pass;
    story_.Run();
    EXPECT_EQ(story_.Updated().size(), nodes);
  }
  ASSERT_EQ(story_.Phase(), "Observe");
  for (int pass = 0; pass < 2; ++pass) {
    story_.EndPass();
    --story_.inputs.streams[0].pass;
    std::erase_if(story_.inputs.passes, [](const PassStatus& one) { return one.sum.stream == 1; });
  }
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
  EXPECT_EQ(story_.Reason(), "Complete");
}

TEST_F(Rollout, AJobThatGoesOnAfterAllIsWaitedForAgain) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  story_.Read(2, 9);
  Prepare();
  ++story_.inputs.streams[1].pass;
  story_.inputs.now += knobs().epoch_deadline_seconds + 1;
  story_.Run();
  ASSERT_EQ(story_.state.overrun.size(), 1U);
  ++story_.inputs.streams[0].pass;
  ++story_.inputs.streams[1].pass;
  story_.Run();
  ASSERT_THAT(story_.Updated(), ElementsAre("a", "b"));
  ++story_.inputs.streams[1].pass;
  story_.Run();
  EXPECT_THAT(story_.Updated(), ElementsAre("a", "b"));
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message,
              HasSubstr("begin another epoch: vision/job1/imagenet/train"));
}

TEST_F(Rollout, WhereTheOnlyJobHangsARolloutIsCompleteAndSaysSo) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  Prepare();
  story_.inputs.now += knobs().epoch_deadline_seconds + 1;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(story_.Reason(), "CompleteUnobserved");
}

// Its last pass was read by the revision before.
TEST_F(Rollout, AJobThatEndsBeforeTheLastNodeGoesOverIsNotCounted) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  story_.costs["old"] = 900;
  Prepare();
  for (int pass = 0; pass < 2; ++pass) {
    story_.EndPass();
    story_.Run();
  }
  ASSERT_THAT(story_.Updated(), ElementsAre("a", "b"));
  story_.costs["new"] = 900;
  story_.EndPass();
  story_.inputs.streams.clear();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).observed);
}

TEST_F(Rollout, APauseDoesNotCountForTheEpochDeadline) {
  knobs().at_epoch_boundary = true;
  story_.Read(1, 4);
  Prepare();
  knobs().paused = true;
  story_.Run();
  story_.inputs.now += knobs().epoch_deadline_seconds + 1;
  knobs().paused = false;
  story_.Run();
  EXPECT_THAT(story_.Updated(), IsEmpty());
  EXPECT_EQ(story_.Reason(), "EpochAwaited");
  story_.inputs.now += knobs().epoch_deadline_seconds + 1;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
}

TEST_F(Rollout, NodesThatComeAndGoAllTheTimeEndNoObservationForEver) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  int epochs = 0;
  for (; story_.Phase() == "Observe" && epochs < 100; ++epochs) {
    ++story_.Node("b").member;
    story_.EndPass();
    story_.Run();
  }
  EXPECT_LT(epochs, 10);
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, OtherJobsAreObservedWhereOneEndsNoEpoch) {
  story_.Read(1, 4);
  story_.Read(2, 9);
  story_.costs["new"] = 1000;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.now += knobs().epoch_deadline_seconds;
  story_.EndPass();
  story_.EndPass();
  std::erase_if(story_.inputs.passes, [](const PassStatus& pass) { return pass.sum.stream == 1; });
  for (PassStatus& pass : story_.inputs.passes) {
    pass.sum.planned_reads = RolloutStory::kReads;
    pass.sum.planned_misses = 400;
  }
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message,
              HasSubstr("0 of 1 epochs are observed of: vision/job1/imagenet/train"));
  story_.inputs.now += knobs().epoch_deadline_seconds;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe") << "since the last epoch that was counted";
  ++story_.inputs.now;
  story_.Run();
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
}

TEST_F(Rollout, WhereNoEpochEndsNothingSpeaksAgainstIt) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  for (StreamId generation = 2; generation < 10; ++generation) {  // each of its own id
    story_.inputs.streams.clear();
    story_.Read(generation, 0);
    story_.inputs.now += knobs().epoch_deadline_seconds / 8;
    story_.Run();
    EXPECT_EQ(story_.Phase(), "Observe");
  }
  ++story_.inputs.now;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_FALSE(story_.state.previous);
  EXPECT_EQ(story_.Reason(), "CompleteUnobserved");
  EXPECT_THAT(ReportOf(story_.state, story_.inputs).message, HasSubstr("vision/job9/imagenet"));
  story_.EndPass();
  story_.EndPass();
  EXPECT_EQ(story_.Reason(), "Complete") << "it has been observed after all";
}

TEST_F(Rollout, WhatWasObservedOfTheRevisionInForceIsWhatTheNextIsComparedWith) {
  story_.Read(1, 4);
  story_.Run();
  ReadAWholePass();
  ASSERT_EQ(story_.Phase(), "Complete");
  story_.predicted["other"] = story_.costs["other"] = 440;  // a tenth more
  story_.inputs.revision = "other";
  knobs().acknowledge = true;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe") << "no pass has ended since";
  ASSERT_TRUE(story_.state.previous);
  EXPECT_EQ(story_.state.previous->store_bytes_per_read_tenths, 400U);
  ReadAWholePass();
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, WhatIsObservedIsOfOneRevisionAlone) {
  story_.Read(1, 4);
  story_.EndPass();
  EXPECT_TRUE(ReportOf(story_.state, story_.inputs).observed);
  Prepare();
  story_.Step();
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).observed);
  story_.Run();
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).observed);
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).predicted);
  EXPECT_TRUE(ReportOf(story_.state, story_.inputs).forgets);
  ReadAWholePass();
  ASSERT_EQ(story_.Phase(), "Complete");
  EXPECT_FALSE(ReportOf(story_.state, story_.inputs).observed);  // what was counted stands
  story_.EndPass();
  const RolloutReport report = ReportOf(story_.state, story_.inputs);
  EXPECT_EQ(report.since, "pass 7 of vision/job1/imagenet/train");
  EXPECT_FALSE(report.predicted) << "no plan covers it";
}

}  // namespace
}  // namespace optcache::coordination
