#include "headspace/step_clock.h"

#include <gtest/gtest.h>

namespace optcache::headspace {
namespace {

using std::chrono::milliseconds;

constexpr Options kClockOptions{.warmup_steps = 30, .steps = 40, .free_steps = 20};
// After a change; a request of a loader without workers.
constexpr std::uint64_t kLeft = 4;

class StepClockTest : public testing::Test {
 protected:
  // Asks again after `step`.
  Phase Ask(milliseconds step = milliseconds(100)) {
    now_ += step;
    return clock_.OnAsk({.at = now_, .pass = pass_, .ahead = ahead_, .staged_max = staged_max_});
  }
  // Asks until the phase changes; how often before that.
  std::uint64_t AskWhile(Phase phase, milliseconds step = milliseconds(100)) {
    std::uint64_t asks = 0;
    while (Ask(step) == phase) {
      if (++asks > 10'000) return asks;
    }
    return asks;
  }
  // Of all measured steps together.
  Duration MeasuredTime() const {
    Duration all{};
    for (const Duration time : clock_.measured().time)
      all += time;
    return all;
  }

  StepClock clock_{kClockOptions};
  MonotonicTime now_{};
  std::uint64_t pass_ = 0;
  std::uint32_t ahead_ = 0;
  std::uint64_t staged_max_ = 0;
};

TEST_F(StepClockTest, GoesThroughAllPhasesAndEnds) {
  EXPECT_EQ(AskWhile(Phase::kWarmUp), 30U);
  EXPECT_EQ(AskWhile(Phase::kMeasured), 39U) << "the request that ends the last step is another's";
  EXPECT_EQ(AskWhile(Phase::kGathering), kGatherSteps - 1);
  EXPECT_EQ(AskWhile(Phase::kFree), kLeft + 19);
  EXPECT_EQ(Ask(), Phase::kDone);
  EXPECT_EQ(clock_.measured().all_steps(), 40U);
  EXPECT_EQ(clock_.free().all_steps(), 20U);
}

TEST_F(StepClockTest, LeavesOutAsManyMoreAsMayHaveBeenStaged) {
  staged_max_ = 12;
  EXPECT_EQ(AskWhile(Phase::kWarmUp), 30U);
  EXPECT_EQ(AskWhile(Phase::kDraining), 11U);
  EXPECT_EQ(AskWhile(Phase::kMeasured), 39U);
}

TEST_F(StepClockTest, CountsTheTimeOfEachPhaseAlone) {
  AskWhile(Phase::kWarmUp, milliseconds(900));
  AskWhile(Phase::kMeasured, milliseconds(100));
  AskWhile(Phase::kGathering, milliseconds(700));
  AskWhile(Phase::kFree, milliseconds(30));
  for (std::size_t block = 0; block < kBlocks; ++block) {
    EXPECT_EQ(clock_.measured().steps.at(block), 4U);
    EXPECT_EQ(clock_.measured().time.at(block), milliseconds(400));
    EXPECT_EQ(clock_.free().steps.at(block), 2U);
    EXPECT_EQ(clock_.free().time.at(block), milliseconds(60));
  }
}

TEST_F(StepClockTest, LeavesOutAValidationAndTheQueueThatWasFilledMeanwhile) {
  ahead_ = 3;
  AskWhile(Phase::kWarmUp);
  for (int i = 0; i < 9; ++i)
    Ask();
  clock_.Interrupt();
  for (std::uint32_t i = 0; i < ahead_; ++i)  // by workers, as their batches are ready
    Ask(milliseconds(1));
  EXPECT_EQ(Ask(milliseconds(60'000)), Phase::kMeasured);
  for (std::uint32_t i = 0; i < ahead_; ++i)
    Ask(milliseconds(10));
  EXPECT_EQ(clock_.measured().all_steps(), 9U);
  AskWhile(Phase::kMeasured);
  EXPECT_EQ(MeasuredTime(), milliseconds(4000));
}

TEST_F(StepClockTest, LeavesOutWhatLiesBetweenTwoPasses) {
  AskWhile(Phase::kWarmUp);
  for (int i = 0; i < 9; ++i)
    Ask();
  pass_ = 1;
  EXPECT_EQ(Ask(milliseconds(60'000)), Phase::kMeasured);
  EXPECT_EQ(clock_.measured().all_steps(), 9U);
  AskWhile(Phase::kMeasured);
  EXPECT_EQ(MeasuredTime(), milliseconds(4000));
}

TEST_F(StepClockTest, LeavesOutTheBurstThatFillsTheWorkersQueue) {
  ahead_ = 8;
  AskWhile(Phase::kWarmUp);
  AskWhile(Phase::kMeasured);
  AskWhile(Phase::kGathering);
  for (int i = 0; i < 8; ++i)
    Ask(milliseconds(0));
  AskWhile(Phase::kFree, milliseconds(50));
  for (const Duration time : clock_.free().time)
    EXPECT_EQ(time, milliseconds(100));
}

TEST_F(StepClockTest, PassesThatAreTooShortAreNeverMeasured) {
  AskWhile(Phase::kWarmUp);
  for (pass_ = 1; pass_ <= 100; ++pass_) {
    for (std::uint64_t i = 0; i < kLeft; ++i)
      EXPECT_EQ(Ask(), Phase::kMeasured);
  }
  EXPECT_EQ(clock_.measured().all_steps(), 0U);
}

TEST_F(StepClockTest, CountsAnswersOfThePhasesThatAreMeasured) {
  const Answer answer{.samples = 8, .hits = 2, .bytes = 800, .waited = milliseconds(5)};
  clock_.OnAnswer(answer);
  AskWhile(Phase::kWarmUp);
  clock_.OnAnswer(answer);
  clock_.OnAnswer(answer);
  AskWhile(Phase::kMeasured);
  clock_.OnAnswer(answer);
  AskWhile(Phase::kGathering);
  clock_.OnAnswer(answer);
  EXPECT_EQ(clock_.measured().answers, 2U);
  EXPECT_EQ(clock_.measured().samples, 16U);
  EXPECT_EQ(clock_.measured().hits, 4U);
  EXPECT_EQ(clock_.measured().waited, milliseconds(10));
  EXPECT_EQ(clock_.free().answers, 1U);
  EXPECT_EQ(clock_.free().bytes, 800U);
}

TEST_F(StepClockTest, NothingIsMeasuredOnceItIsFinished) {
  AskWhile(Phase::kWarmUp);
  clock_.Finish();
  EXPECT_EQ(Ask(), Phase::kDone);
  EXPECT_EQ(clock_.measured().all_steps(), 0U);
}

}  // namespace
}  // namespace optcache::headspace
