#include "storage/retry_wait.h"

#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ReadOutcome FailedBy(Code code, Duration retry_after = Duration::zero()) {
  return {.status = {code, "cause"}, .retry_after = retry_after};
}

constexpr TimeLeft kMuch = {.patience = seconds(600), .deadline = std::chrono::hours(24)};

TEST(WaitBeforeRetry, DependsOnTheCode) {
  for (const Code code :
       {Code::kUnavailable, Code::kDeadlineExceeded, Code::kDataLoss, Code::kResourceExhausted}) {
    EXPECT_EQ(WaitBeforeRetry({}, FailedBy(code), seconds(1), kMuch), seconds(1));
  }
  for (const Code code : {Code::kNotFound, Code::kConflict, Code::kInvalidArgument,
                          Code::kPermissionDenied, Code::kCancelled, Code::kInternal, Code::kOk}) {
    EXPECT_EQ(WaitBeforeRetry({}, FailedBy(code), seconds(1), kMuch), std::nullopt);
  }
}

TEST(WaitBeforeRetry, NewKeysMayCome) {
  ReadOutcome expired = FailedBy(Code::kPermissionDenied);
  expired.keys_expired = true;
  EXPECT_EQ(WaitBeforeRetry({}, expired, seconds(1), kMuch), seconds(1));
}

TEST(WaitBeforeRetry, TheLastAttemptIsMadeWhenPatienceEnds) {
  const ReadOutcome failed = FailedBy(Code::kUnavailable);
  TimeLeft left = kMuch;
  left.patience = seconds(4);
  EXPECT_EQ(WaitBeforeRetry({}, failed, seconds(10), left), seconds(4));
  left.patience = Duration::zero();
  EXPECT_EQ(WaitBeforeRetry({}, failed, seconds(10), left), std::nullopt);
}

TEST(WaitBeforeRetry, NothingIsTriedAtTheDeadline) {
  TimeLeft left = kMuch;
  left.deadline = seconds(9);
  EXPECT_TRUE(WaitBeforeRetry({}, FailedBy(Code::kUnavailable), seconds(8), left).has_value());
  EXPECT_FALSE(WaitBeforeRetry({}, FailedBy(Code::kUnavailable), seconds(9), left).has_value());
}

TEST(WaitBeforeRetry, HonoursRetryAfterWithinPatience) {
  const ReadOutcome busy = FailedBy(Code::kUnavailable, seconds(7));
  EXPECT_EQ(WaitBeforeRetry({}, busy, seconds(1), kMuch), seconds(7));
  EXPECT_EQ(WaitBeforeRetry({}, busy, seconds(8), kMuch), seconds(8));
  TimeLeft left = kMuch;
  left.patience = seconds(6);
  EXPECT_EQ(WaitBeforeRetry({}, busy, seconds(1), left), std::nullopt);
}

TEST(WaitBeforeRetry, CapsWhatTheStoreAsksFor) {
  const ReadOutcome maintenance = FailedBy(Code::kUnavailable, std::chrono::hours(1));
  EXPECT_EQ(WaitBeforeRetry({}, maintenance, seconds(1), kMuch), seconds(60));
}

}  // namespace
}  // namespace optcache::storage
