// For which nodes, jobs and memory forecasts are made, and when they are made again.

#include <gtest/gtest.h>

#include "coordinator/rollout.h"
#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

// Rests in Prepare with what was derived for one job and 6400 bytes.
class Held : public Rollout {
 protected:
  Held() {
    story_.inputs.memory = 6400;
    story_.Read(1, 4);
    story_.predicted["new"] = 900;
    story_.Run();
    EXPECT_EQ(story_.Reason(), "PredictedWorse");
  }
};

TEST_F(Held, WhatIsPredictedIsForTheMemoryOfNow) {
  story_.inputs.memory = 3200;
  story_.predicted["new"] = 500;
  story_.Step();
  EXPECT_EQ(story_.state.tries, 1U);
  EXPECT_FALSE(story_.state.predicted);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe") << "it is not worse any more";
  EXPECT_EQ(story_.state.predicted->hit_permille, 500U);
}

TEST_F(Held, WhatIsPredictedIsForTheJobsOfNow) {
  story_.Read(2, 0);
  story_.predicted["new"] = 500;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
}

TEST_F(Held, RanksThatAreStillToComeAreNoJobYet) {
  story_.Read(2, 0);
  story_.inputs.streams.back().gathering = true;
  story_.Run();
  EXPECT_EQ(story_.state.tries, 0U);
  story_.inputs.streams.back().gathering = false;
  story_.Run();
  EXPECT_EQ(story_.state.tries, 1U);
}

TEST_F(Held, ItIsDerivedAgainOnceAMinuteAtMost) {
  for (std::uint32_t tries = 1; tries <= 3; ++tries) {
    story_.inputs.memory *= 2;
    story_.Run();
    EXPECT_EQ(story_.state.tries, tries);
  }
  story_.inputs.memory *= 2;
  story_.Run();
  EXPECT_EQ(story_.state.tries, 3U);
  story_.inputs.now += 60;
  story_.Run();
  EXPECT_EQ(story_.state.tries, 4U);
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
}

TEST_F(Rollout, APauseInPrepareEndsWithAForecastOfNow) {
  story_.inputs.memory = 6400;
  story_.Read(1, 4);
  knobs().paused = true;
  story_.Run();
  story_.inputs.memory = 3200;
  story_.predicted["new"] = 900;
  story_.Run();
  EXPECT_EQ(story_.state.predicted->hit_permille, 100U);
  knobs().paused = false;
  story_.Run();
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
}

// Nodes derive both from the same inputs, but not all nodes from the same as others.
TEST_F(Rollout, ForecastsFromOtherInputsAreNotComparedWithEachOther) {
  story_.predicted["new"] = 900;
  story_.Step();
  story_.state.tries = 3;
  story_.AllAnswer();
  story_.Node("a").trials[0].planned = {1, 3};
  story_.Node("b").trials[0].planned = {1, 2};
  story_.Node("b").trials[1].planned = {1, 2};
  story_.Node("b").trials[0].all.store_bytes = 0;
  story_.StepUntilStill();
  EXPECT_EQ(story_.Phase(), "Activate") << "the newest of which both are known is not worse";
}

// What they say of the two is of different jobs, nodes or memory.
TEST_F(Rollout, NothingIsDecidedBeforeANodeHasDerivedBothFromTheSameInputs) {
  story_.predicted["new"] = 900;
  story_.Step();
  for (int look = 0; look < 10; ++look) {
    story_.AllAnswer();
    for (RolloutNode& node : story_.inputs.nodes)
      node.trials[0].planned = {1, 2};
    story_.Step();
  }
  EXPECT_EQ(story_.Phase(), "Prepare");
  EXPECT_EQ(story_.state.tries, 3U);
  story_.inputs.now += 60;
  story_.Run();
  EXPECT_EQ(story_.state.tries, 4U);
  EXPECT_EQ(story_.Reason(), "PredictedWorse");
}

// --- What they are compared with ----------------------------------------------------------------

class Compared : public Rollout {
 protected:
  void ObserveMoreThanWasForecast() {
    story_.costs["new"] = 700;
    story_.Run();
    ASSERT_EQ(story_.Phase(), "Observe");
    EXPECT_EQ(story_.state.tries, 0U);
    ObserveWhatIsWorse();
  }
};

// A trial leaves its reads out, and what is observed has them.
TEST_F(Compared, AForecastWithoutAJobOfUnknownOrderIsNotComparedWithAll) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.inputs.streams[1].order_known = false;
  ObserveMoreThanWasForecast();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

// A trial has its reads, and what is observed does not.
TEST_F(Compared, AForecastWithAJobThatDoesNotReadIsNotComparedWithTheOthers) {
  story_.Read(1, 4);
  story_.inputs.jobs = {"job1", "later"};
  ObserveMoreThanWasForecast();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Compared, AForecastOfAllJobsThatAreNamedIsComparedWithThem) {
  story_.Read(1, 4);
  story_.inputs.jobs = {"job1"};
  ObserveMoreThanWasForecast();
  EXPECT_EQ(story_.Reason(), "BelowPredicted");
}

}  // namespace
}  // namespace optcache::coordination
