#include "cache/disk_state.h"

#include <chrono>

#include <gtest/gtest.h>

namespace optcache::cache {
namespace {

using std::chrono::seconds;
constexpr MonotonicTime kStart{std::chrono::hours(1)};

TEST(DiskState, ItsBudgetIsHard) {
  DiskState disk(100);
  EXPECT_TRUE(disk.Take(60));
  EXPECT_FALSE(disk.Take(41));
  EXPECT_FALSE(disk.Take(~ByteCount{0}));
  EXPECT_EQ(disk.room_wanted(), 2U);
  EXPECT_TRUE(disk.Take(40));
  disk.GiveBack(100);
  EXPECT_EQ(disk.used(), 0U);
  EXPECT_EQ(disk.peak(), 100U);
}

TEST(DiskState, WhatWasFoundMayBeMoreThanTheBudget) {
  DiskState disk(100);
  disk.TakeFound(1, 150);
  EXPECT_FALSE(disk.Take(1));
  disk.GiveBack(60);
  EXPECT_TRUE(disk.Take(10));
}

TEST(DiskState, WhatCannotBeReadIsOfNoUse) {
  DiskState disk(100);
  EXPECT_EQ(disk.usable(), 100U);
  disk.TakeFound(1, 30);
  disk.OnUnread(30);
  EXPECT_EQ(disk.usable(), 70U);
  EXPECT_EQ(disk.used(), 30U);
  disk.OnUnread(80);
  EXPECT_EQ(disk.usable(), 0U);
}

TEST(DiskState, NoTwoSegmentsHaveOneNumber) {
  DiskState disk(100);
  disk.TakeFound(7, 1);
  disk.TakeFound(3, 1);
  EXPECT_EQ(disk.NextNumber(), 8U);
  EXPECT_EQ(disk.NextNumber(), 9U);
}

TEST(DiskState, AFullDiskIsTriedAgainLater) {
  DiskState disk(100);
  disk.OnWritten({Code::kResourceExhausted, "full"}, 1, 1, kStart);
  EXPECT_FALSE(disk.may_write(kStart + seconds(59)));
  EXPECT_TRUE(disk.may_write(kStart + seconds(60)));
  EXPECT_FALSE(disk.failed());
  EXPECT_EQ(disk.counters().full, 1U);
}

TEST(DiskState, AfterAnErrorNothingMoreIsWrittenButRead) {
  DiskState disk(100);
  disk.OnWritten({Code::kInternal, "input/output error"}, 1, 1, kStart);
  EXPECT_FALSE(disk.may_write(kStart + std::chrono::hours(24)));
  EXPECT_TRUE(disk.failed());
  EXPECT_FALSE(disk.out_of_use());
  EXPECT_EQ(disk.counters().write_errors, 1U);
}

TEST(DiskState, ErrorsInARowTakeItOutOfUse) {
  DiskState disk(100);
  for (int i = 0; i < 7; ++i)
    disk.OnRead({Code::kInternal, "input/output error"}, 0);
  disk.OnRead({}, 10);  // it does work
  for (int i = 0; i < 7; ++i) {
    disk.OnSlowRead(kStart + i * seconds(2));
    EXPECT_FALSE(disk.out_of_use());
  }
  disk.OnRead({Code::kDataLoss, "wrong checksum"}, 0);
  EXPECT_TRUE(disk.out_of_use());
  EXPECT_FALSE(disk.may_write(kStart));
  EXPECT_EQ(disk.counters().read_errors, 14U);
  EXPECT_EQ(disk.counters().bad_samples, 1U);
  EXPECT_EQ(disk.counters().read_bytes, 10U);
}

TEST(DiskState, WhatIsLateAtOneTimeIsOneError) {
  DiskState disk(100);
  for (int i = 0; i < 256; ++i)
    disk.OnSlowRead(kStart + i * std::chrono::milliseconds(5));
  EXPECT_FALSE(disk.out_of_use());
  EXPECT_EQ(disk.counters().read_errors, 256U);
  for (int i = 1; i < 8; ++i) {
    EXPECT_FALSE(disk.out_of_use());
    disk.OnSlowRead(kStart + i * seconds(2));
  }
  EXPECT_TRUE(disk.out_of_use()) << "nothing was read in 16 seconds";
}

TEST(DiskState, TooMuchToDoIsNoError) {
  DiskState disk(100);
  for (int i = 0; i < 20; ++i) {
    disk.OnRead({Code::kUnavailable, "too much waits"}, 0);
    disk.OnRead({Code::kDeadlineExceeded, "waited too long"}, 0);
    disk.OnWritten({Code::kUnavailable, "too much waits"}, 1, 1, kStart);
    disk.OnChanged({Code::kUnavailable, "too much waits"});
  }
  EXPECT_TRUE(disk.may_write(kStart));
  EXPECT_FALSE(disk.failed());
}

TEST(DiskState, WhatCannotBeRemovedIsAnError) {
  DiskState disk(100);
  disk.OnChanged({Code::kInternal, "input/output error"});
  EXPECT_TRUE(disk.failed());
}

}  // namespace
}  // namespace optcache::cache
