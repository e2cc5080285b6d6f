#include "sidecar/fetch/store_speed.h"

#include <vector>

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

using Load = StoreSpeed::Load;
using std::chrono::milliseconds;
using std::chrono::seconds;

class StoreSpeedTest : public testing::Test {
 protected:
  // Bytes come at this rate for a time under that load.
  void Pass(Load load, ByteCount per_second, Duration time) {
    for (Duration passed{}; passed < time; passed += milliseconds(50)) {
      speed_.Note(now_, arrived_, load);
      now_ += milliseconds(50);
      arrived_ += per_second / 20;
    }
    speed_.Note(now_, arrived_, load);
  }
  // There is always more to read than may run: `rate` are the bytes a second of so many reads.
  template <typename Rate>
  void Train(Rate rate, Duration time) {
    for (Duration passed{}; passed < time; passed += milliseconds(50)) {
      const bool holds = speed_.TimeFor(1).has_value() && speed_.width() < 8;
      if (holds) held_ += 0.05;
      Pass(holds ? Load::kHeld : Load::kFull,
           static_cast<ByteCount>(rate(holds ? speed_.width() : 8)), milliseconds(50));
    }
  }
  void EndReads(ByteCount bytes, int reads, Duration took) {
    for (int i = 0; i < reads; ++i) {
      const StoreSpeed::Begun begun = speed_.Begin(bytes, now_);
      now_ += took;
      speed_.NoteEnd(begun, now_);
    }
  }
  double SecondsFor(ByteCount bytes) const { return ToSeconds(speed_.TimeFor(bytes).value()); }

  StoreSpeed speed_{8};
  MonotonicTime now_ = MonotonicTime(seconds(1));
  ByteCount arrived_ = 0;
  double held_ = 0;  // seconds in which reads were held back
};

TEST_F(StoreSpeedTest, IsKnownOnceAllPlacesWereTakenForAWhile) {
  Pass(Load::kLight, 1000, seconds(10));
  EXPECT_FALSE(speed_.TimeFor(1));
  Pass(Load::kFull, 1000, milliseconds(400));
  EXPECT_FALSE(speed_.TimeFor(1));
  Pass(Load::kFull, 1000, milliseconds(400));
  EXPECT_NEAR(SecondsFor(2000), 2, 0.01);
}

TEST_F(StoreSpeedTest, IsNotKnownIfStoresDoNotSayWhatHasCome) {
  Pass(Load::kFull, 0, seconds(10));
  EXPECT_FALSE(speed_.TimeFor(1));
}

TEST_F(StoreSpeedTest, FollowsTheLastSeconds) {
  Pass(Load::kFull, 1000, seconds(10));
  Pass(Load::kFull, 4000, seconds(20));
  EXPECT_NEAR(SecondsFor(4000), 1, 0.05);
}

// One read gets all that there is.
TEST_F(StoreSpeedTest, AStoreOfOneBandwidthNeedsOneRead) {
  Train([](std::size_t) { return 1000; }, seconds(100));
  EXPECT_EQ(speed_.width(), 1U);
  EXPECT_GT(held_, 85);
}

// Each read gets an eighth of it.
TEST_F(StoreSpeedTest, AStoreThatLimitsEachReadGetsMoreOfThemWithinSeconds) {
  Train([](std::size_t reads) { return 1000 * reads; }, seconds(8));
  EXPECT_EQ(speed_.width(), 8U);
  EXPECT_NEAR(SecondsFor(8000), 1, 0.02) << "the speed is that of all places";
}

TEST_F(StoreSpeedTest, AReadThatStandsStillHoldsUpOthersForSecondsAtMost) {
  Train([](std::size_t) { return 8000; }, seconds(20));
  held_ = 0;
  Train([](std::size_t reads) { return 8000 * (reads == 8); }, seconds(20));
  EXPECT_EQ(speed_.width(), 8U);
  EXPECT_LT(held_, 3);
}

TEST_F(StoreSpeedTest, TriesFewerReadsAfterAWhile) {
  Train([](std::size_t reads) { return 1000 * reads; }, seconds(20));
  ASSERT_EQ(speed_.width(), 8U);
  held_ = 0;
  Train([](std::size_t reads) { return 1000 * reads; }, seconds(300));
  EXPECT_GT(held_, 3);
  EXPECT_LT(held_, 8) << "and takes it back if they get less";
  Train([](std::size_t) { return 8000; }, seconds(150));
  EXPECT_EQ(speed_.width(), 1U);
}

// What comes does not tell it: the sizes of the few reads that end differ.
TEST_F(StoreSpeedTest, NothingIsHeldBackWhereReadsTakeFarLongerThanTheirBytesNeed) {
  Pass(Load::kFull, 10'000, seconds(1));
  ASSERT_EQ(speed_.width(), 1U);
  EndReads(100, 5, milliseconds(600));
  EXPECT_EQ(speed_.width(), 1U) << "it may be chance";
  EndReads(100, 1, milliseconds(600));
  EXPECT_EQ(speed_.width(), 8U);
}

TEST_F(StoreSpeedTest, AReadIsNotLateThatIsLargeOrSharesTheStoreWithAnother) {
  Pass(Load::kFull, 10'000, seconds(1));
  EndReads(100, 20, milliseconds(240));
  EndReads(50'000, 20, seconds(15));
  EXPECT_EQ(speed_.width(), 1U);
}

TEST_F(StoreSpeedTest, APauseThatMakesManyReadsLateCountsOnce) {
  Pass(Load::kFull, 10'000, seconds(1));
  for (int pauses = 0; pauses < 3; ++pauses) {
    const std::vector<StoreSpeed::Begun> begun(30, speed_.Begin(100, now_));
    now_ += milliseconds(500);
    for (const StoreSpeed::Begun& each : begun)
      speed_.NoteEnd(each, now_);
    EndReads(100, 4, milliseconds(100));
  }
  EXPECT_EQ(speed_.width(), 1U);
}

TEST_F(StoreSpeedTest, ReadsThatBeganBeforeTheSpeedWasKnownAreNotLate) {
  const StoreSpeed::Begun begun = speed_.Begin(100, now_);
  Pass(Load::kFull, 10'000, seconds(1));
  for (int i = 0; i < 20; ++i)
    speed_.NoteEnd(begun, now_ + seconds(100));
  EXPECT_EQ(speed_.width(), 1U);
}

// Held back, the reads get as much as was measured. Without that, they would get far more.
TEST_F(StoreSpeedTest, IsMeasuredAgainAfterAWhile) {
  Train([](std::size_t) { return 1000; }, seconds(200));
  Train([](std::size_t reads) { return reads == 8 ? 20'000 : 1000; }, seconds(30));
  EXPECT_NEAR(SecondsFor(20'000), 1, 0.05);
  EXPECT_GT(speed_.width(), 1U);
}

// Nothing but a few bytes has come for minutes.
TEST_F(StoreSpeedTest, AStoreThatHangsTakesLongAndNotForEver) {
  Pass(Load::kFull, 1000, seconds(1));
  now_ += seconds(200);
  speed_.Note(now_, arrived_, Load::kFull);
  EXPECT_GT(SecondsFor(4_MiB), 1e5);
  EXPECT_LT(SecondsFor(4_MiB), 1e7);
}

}  // namespace
}  // namespace optcache::sidecar
