// Jobs that begin and end while an update is observed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/rollout.h"
#include "unit/coordinator/rollout_fixture.h"

namespace optcache::coordination {
namespace {

// What was predicted is for all jobs together.
TEST_F(Rollout, APartOfTheJobsIsNotComparedWithAForecastOfAllOfThem) {
  story_.Read(1, 4);
  story_.Read(2, 9);
  story_.costs["new"] = 1000;
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.EndPass();
  std::erase_if(story_.inputs.passes, [](const PassStatus& pass) { return pass.sum.stream == 1; });
  story_.Run();
  story_.inputs.now += knobs().epoch_deadline_seconds + 1;
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_TRUE(story_.state.uncompared);
}

// Each ends an epoch, and one that was there before ends none.
TEST_F(Rollout, JobsThatBeginOneAfterTheOtherDoNotHoldItUp) {
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  StreamId job = 2;
  for (std::int64_t hours = 0; story_.Phase() == "Observe" && hours < 48; ++hours, ++job) {
    story_.Read(job, 0);
    story_.Run();
    story_.EndPass();
    std::erase_if(story_.inputs.passes,
                  [](const PassStatus& pass) { return pass.sum.stream == 1; });
    story_.inputs.streams[0].pass = 4;
    story_.inputs.streams.pop_back();
    story_.inputs.now += 3600;
    story_.Run();
  }
  EXPECT_EQ(story_.Phase(), "Complete");
  EXPECT_EQ(job, 27U) << "after a day, as if none had begun";
}

TEST_F(Rollout, AJobThatBeginsIsNotWaitedForWhenItHasEndedAnEpoch) {
  knobs().after = 2;
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  ReadAWholePass();
  story_.Read(2, 0);
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.EndPass();  // the second of the first job, the first of the other
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

TEST_F(Rollout, WhereAllHaveEndedThoseThatBeginAreObservedForAsManyEpochs) {
  knobs().after = 2;
  story_.Read(1, 4);
  story_.Run();
  ASSERT_EQ(story_.Phase(), "Observe");
  story_.inputs.streams.clear();
  story_.Read(2, 0);
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Observe");
  story_.EndPass();
  story_.Run();
  EXPECT_EQ(story_.Phase(), "Complete") << story_.Reason();
}

}  // namespace
}  // namespace optcache::coordination
