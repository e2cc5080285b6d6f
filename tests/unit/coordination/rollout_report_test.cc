// What is said to be observed of a rollout, and predicted of the same.

#include <gtest/gtest.h>

#include "coordination/rollout.h"
#include "unit/coordination/rollout_fixture.h"

namespace optcache::coordination {
namespace {

// "new" is not planned, and trials say what it is worth.
class Foretold : public Rollout {
 protected:
  Foretold() { story_.inputs.is_tried = true; }
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

TEST_F(Foretold, WhatWasCountedStandsUntilAnotherEpochEnds) {
  story_.Read(1, 4);
  ASSERT_NO_FATAL_FAILURE(Complete());
  ASSERT_TRUE(story_.state.forecast);
  EXPECT_FALSE(Report().observed);
  EXPECT_FALSE(Report().forgets);
  story_.Read(2, 0);
  EXPECT_TRUE(Report().forgets) << "it was of other jobs";
}

}  // namespace
}  // namespace optcache::coordination
