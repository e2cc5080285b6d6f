#include "sidecar/fetch/read_pace.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Asks for ten samples every 100 ms.
class ReadPaceTest : public testing::Test {
 protected:
  void Read(int batches, Duration step = milliseconds(100)) {
    for (int i = 0; i < batches; ++i) {
      now_ += step;
      for (int sample = 0; sample < 10; ++sample)
        pace_.OnAsked(++front_, now_);
    }
  }
  double DueIn(ReadPace::Place place) const { return ToSeconds(pace_.DueAt(place, now_) - now_); }

  ReadPace pace_;
  ReadPace::Place front_ = 0;
  MonotonicTime now_ = MonotonicTime(seconds(1));
};

TEST_F(ReadPaceTest, SaysWhenAPlaceIsDue) {
  Read(50);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
  EXPECT_NEAR(DueIn(front_ - 100), -1, 0.03) << "it was asked for a second ago";
}

TEST_F(ReadPaceTest, AllIsDueAtOnceAndInOrderBeforeThePaceIsKnown) {
  Read(5);
  EXPECT_LT(DueIn(front_ + 1000), 0.01);
  EXPECT_LT(DueIn(front_ + 1), DueIn(front_ + 2));
}

TEST_F(ReadPaceTest, FollowsTheLastSeconds) {
  Read(50);
  Read(100, milliseconds(200));
  EXPECT_NEAR(DueIn(front_ + 100), 2, 0.1);
}

TEST_F(ReadPaceTest, WhatIsAheadComesNearerWhileTheTrainerComputes) {
  Read(50);
  now_ += milliseconds(80);
  EXPECT_NEAR(DueIn(front_ + 100), 0.92, 0.03);
  now_ += seconds(600);
  EXPECT_GT(DueIn(front_ + 200), 0.9) << "but a pause does not make all of it late";
}

TEST_F(ReadPaceTest, APauseIsNoPace) {
  Read(50);
  now_ += seconds(600);
  Read(1);
  EXPECT_LT(DueIn(front_ + 100), 1.5);
}

TEST_F(ReadPaceTest, WhatABeginningPassLeavesOutWasNotRead) {
  Read(50);
  front_ += 100'000;
  pace_.SkipTo(front_);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
}

TEST_F(ReadPaceTest, NothingIsDueForLongBeforeTheFirstSample) {
  EXPECT_GT(DueIn(0), 1000);
  EXPECT_LT(DueIn(0), DueIn(1));
}

TEST_F(ReadPaceTest, ASampleFarAheadIsOneSampleAndMakesNothingBeforeItLate) {
  Read(50);
  pace_.OnAsked(front_ + 5000, now_);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
  Read(50);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
}

TEST_F(ReadPaceTest, ARankThatGoesOnFarAheadIsFollowedAfterASecond) {
  Read(50);
  front_ += 5000;
  Read(5);
  EXPECT_GT(DueIn(front_ + 100), 10);
  Read(10);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
}

// Pauses are longer than a second: so the one sample is taken for the place where the rank goes on.
TEST_F(ReadPaceTest, ARankThatGoesOnAsBeforeIsFollowedBack) {
  Read(50, seconds(2));
  now_ += seconds(2);
  pace_.OnAsked(front_ + 5000, now_);
  EXPECT_LT(DueIn(front_ + 100), -100) << "it is taken to be over";
  Read(2, seconds(2));
  EXPECT_GT(DueIn(front_ + 100), 5);
}

TEST_F(ReadPaceTest, ARankMayBeginInTheMiddleOfAPass) {
  Read(50);
  pace_.SkipTo(100'000);
  front_ = 150'000;
  Read(1);
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
}

TEST_F(ReadPaceTest, WorkersMayAskInAnyOrderOfWhatIsWithThem) {
  pace_.SkipTo(front_, 4096);
  Read(50);
  const ReadPace::Place asked = front_;
  pace_.OnAsked(front_ + 4000, now_);
  front_ += 2000;
  Read(50);
  EXPECT_NEAR(DueIn(asked + 4100), 1, 0.05);
}

TEST_F(ReadPaceTest, WorkersThatAskOutOfOrderDoNotSetItBack) {
  Read(50);
  pace_.OnAsked(front_ - 5, now_ + milliseconds(1));
  EXPECT_NEAR(DueIn(front_ + 100), 1, 0.03);
}

}  // namespace
}  // namespace optcache::sidecar
