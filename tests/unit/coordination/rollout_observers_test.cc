#include "coordination/internal/rollout_observers.h"

#include "unit/coordination/rollout_fixture.h"

namespace optcache::coordination {
namespace {

TEST_F(Rollout, ItsObserversAreKeptAsText) {
  story_.Read(1, 4);
  const internal::Observers observers = internal::ObserversOf(story_.inputs);
  EXPECT_EQ(internal::ObserversIn(internal::TextOf(observers)), observers);
  EXPECT_EQ(internal::ObserversIn("00c2e5a1b7d40f93").nodes, "00c2e5a1b7d40f93");
  EXPECT_EQ(internal::ObserversIn("00c2e5a1b7d40f93").jobs, "");
  EXPECT_EQ(internal::ObserversIn(""), internal::Observers());
}

// A node that starts again holds nothing, and its share is read again: by the limits that a user
// sets this would be the update's fault.
TEST_F(Rollout, AnEpochInWhichANodeStartsAgainDoesNotCount) {
  story_.Read(1, 4);
  story_.EndPass();
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
  story_.EndPass();
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, ANodeThatStartsAgainDoesNotSaveWhatIsWorse) {
  story_.Read(1, 4);
  story_.foretold["new"] = 640;
  story_.costs["new"] = 640;
  knobs().acknowledge = true;
  story_.EndPass();
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.Node("b").member = 77;
  for (int pass = 0; pass < 3; ++pass) {
    story_.Run();
    story_.EndPass();
  }
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Stopped");
  EXPECT_EQ(story_.Reason(), "WorseThanPrevious");
}

TEST_F(Rollout, WhatWasObservedOfOtherNodesIsNotComparedWith) {
  story_.Read(1, 4);
  story_.EndPass();
  story_.Run();
  ASSERT_TRUE(story_.state.previous);
  story_.inputs.nodes.pop_back();
  story_.Step();
  EXPECT_FALSE(story_.state.previous);
}

// Jobs share what one of them reads: the one that stays reads more of the source, by any plan.
TEST_F(Rollout, WhatWasObservedOfOtherJobsIsNotComparedWith) {
  story_.Read(1, 4);
  story_.Read(2, 4);
  story_.EndPass();
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
}

}  // namespace
}  // namespace optcache::coordination
