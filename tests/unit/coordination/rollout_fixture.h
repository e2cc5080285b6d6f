#pragma once

// A rollout that tests begin.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/coordination/rollout_story.h"

namespace optcache::coordination {

// Three nodes follow "old"; the spec asks for "new".
class Rollout : public testing::Test {
 protected:
  Rollout() {
    story_.Place({"a", "b", "c"});
    story_.StepUntilStill();
    story_.inputs.revision = "new";
  }
  RolloutKnobs& knobs() { return story_.inputs.knobs; }
  // To Activate, before any node has gone over.
  void Prepare() {
    story_.Step();
    story_.AllAnswer();
    story_.Step();
    ASSERT_EQ(story_.Phase(), "Activate") << story_.Reason();
  }
  RolloutStory story_;
};

}  // namespace optcache::coordination
