#include "storage/failed_read_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "support/manual_clock.h"

namespace optcache::storage {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class FailedReadLogTest : public testing::Test {
 protected:
  void SetUp() override { SetUpLog("storage_test", LogLevel::kInfo, LogFormat::kText); }
  // What is logged of it.
  std::string Tell(const std::string& object, const Status& status, ByteCount end = 100) {
    testing::internal::CaptureStderr();
    log_.Tell({.store = "http://s",
               .object = object,
               .begin = 10,
               .end = end,
               .attempt = 3,
               .status = status});
    return testing::internal::GetCapturedStderr();
  }

  ManualClock clock_;
  FailedReadLog log_{clock_};
};

TEST_F(FailedReadLogTest, NamesObjectRangeAttemptAndCause) {
  EXPECT_THAT(Tell("a b", {Code::kUnavailable, "HTTP 503"}),
              HasSubstr("a read of the store failed store=http://s object=\"a b\" bytes=10-99 "
                        "attempt=3 code=unavailable cause=\"HTTP 503\" not_logged=0"));
  EXPECT_THAT(Tell("empty", {Code::kNotFound, "gone"}, 10), HasSubstr("bytes=none"));
}

TEST_F(FailedReadLogTest, IsALineASecondForEachCause) {
  EXPECT_THAT(Tell("a", {Code::kUnavailable, "1"}), HasSubstr("object=a"));
  EXPECT_THAT(Tell("b", {Code::kUnavailable, "2"}), IsEmpty());
  EXPECT_THAT(Tell("c", {Code::kNotFound, "3"}), HasSubstr("object=c"));
  EXPECT_THAT(Tell("d", {Code::kUnavailable, "4"}), IsEmpty());
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_THAT(Tell("e", {Code::kUnavailable, "5"}), EndsWith("not_logged=2\n"));
}

TEST_F(FailedReadLogTest, WhatAShutdownCancelsIsNoFailure) {
  EXPECT_THAT(Tell("a", {Code::kCancelled, "the store was shut down"}), IsEmpty());
}

}  // namespace
}  // namespace optcache::storage
