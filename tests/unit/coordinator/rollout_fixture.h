#pragma once

// A rollout that tests begin.

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/coordinator/rollout_story.h"

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
  // Jobs that read have been seen before the spec asks for "new", and have ended a whole pass
  // since. Then `change` has come.
  void ReadOnBefore(const std::function<void()>& change = [] {}) {
    story_.inputs.revision = "old";
    story_.StepUntilStill();
    story_.EndPass();
    story_.EndPass();
    change();
    story_.inputs.revision = "new";
  }
  // The pass in which each job is, and a whole one.
  void ReadAWholePass() {
    story_.EndPass();
    story_.EndPass();
    story_.Run();
  }
  // "new" costs more than "old", as was predicted, and goes to Observe.
  void LetWhatIsWorseBegin() {
    story_.predicted["new"] = story_.costs["new"] = 640;
    knobs().acknowledge = true;
    ReadOnBefore();
    story_.Run();
    ASSERT_EQ(story_.Phase(), "Observe");
  }
  // By the nodes and jobs that there are now.
  void ObserveWhatIsWorse() {
    for (int pass = 0; pass < 3; ++pass) {
      story_.Run();
      story_.EndPass();
    }
    story_.Run();
  }
  RolloutStory story_;
};

}  // namespace optcache::coordination
