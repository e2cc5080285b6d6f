#include "storage/internal/page_retries.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "support/manual_clock.h"

namespace optcache::storage::internal {
namespace {

using testing::HasSubstr;

PageRetryOptions Quick() {
  return {.backoff = {.first = std::chrono::microseconds(1), .limit = std::chrono::microseconds(1)},
          .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
}

// Each look at it takes a millisecond.
class TickingClock final : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(std::chrono::milliseconds(++ticks_)); }
  double UnixSeconds() const override { return 0; }

 private:
  mutable std::atomic<std::int64_t> ticks_ = 0;
};

// A page that fails so often, and then comes as a number.
class FailingPage {
 public:
  FailingPage(int failures, Code code) : failures_(failures), code_(code) {}

  Result<int> operator()() {
    ++asked_;
    if (asked_ <= failures_) return Error(code_, "cause");
    return 7;
  }
  int asked() const { return asked_; }

 private:
  const int failures_;
  const Code code_;
  int asked_ = 0;
};

TEST(PageRetries, APageIsAskedForUntilItComes) {
  PageRetries pages(Quick(), SystemClock());
  for (const Code code :
       {Code::kUnavailable, Code::kDeadlineExceeded, Code::kDataLoss, Code::kResourceExhausted}) {
    FailingPage page(40, code);
    EXPECT_EQ(pages.AskFor("a", [&] { return page(); }), 7);
    EXPECT_EQ(page.asked(), 41);
  }
}

TEST(PageRetries, RefusalsAreNotRepeated) {
  PageRetries pages(Quick(), SystemClock());
  for (const Code code : {Code::kNotFound, Code::kPermissionDenied, Code::kInvalidArgument}) {
    FailingPage page(1 << 30, code);
    const Result<int> answer = pages.AskFor("a", [&] { return page(); });
    EXPECT_EQ(answer.error(), Status(code, "cause"));
    EXPECT_EQ(page.asked(), 1);
  }
}

TEST(PageRetries, PatienceIsShortBeforeAnyPageHasCome) {
  PageRetryOptions options = Quick();
  options.first_patience = std::chrono::milliseconds(20);
  const TickingClock clock;
  PageRetries pages(options, clock);
  FailingPage lost(1 << 30, Code::kUnavailable);
  const Result<int> answer = pages.AskFor("a", [&] { return lost(); });
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_THAT(answer.error().message(), HasSubstr(" times: cause"));
  EXPECT_LT(lost.asked(), 20);
}

TEST(PageRetries, TheLastAttemptIsMadeWhenPatienceEnds) {
  PageRetryOptions options = Quick();
  options.backoff = {.first = std::chrono::hours(1), .limit = std::chrono::hours(1)};
  options.deadline = Deadline(MonotonicTime::max());
  const TickingClock clock;
  PageRetries pages(options, clock);
  FailingPage late(1, Code::kUnavailable);
  EXPECT_EQ(pages.AskFor("a", [&] { return late(); }), 7);
}

// As of a Dataset with `patience: 5s`.
TEST(PageRetries, FirstPagesAreNotWaitedForLongerThanOthers) {
  PageRetryOptions options = Quick();
  options.patience = std::chrono::milliseconds(20);
  options.first_patience = std::chrono::hours(1);
  const TickingClock clock;
  PageRetries pages(options, clock);
  FailingPage lost(1000, Code::kUnavailable);
  EXPECT_FALSE(pages.AskFor("a", [&] { return lost(); }).has_value());
  EXPECT_LT(lost.asked(), 20);
}

TEST(PageRetries, PatienceIsLongOnceAPageHasCome) {
  PageRetryOptions options = Quick();
  options.first_patience = Duration::zero();
  PageRetries pages(options, SystemClock());
  FailingPage first(0, Code::kUnavailable);
  EXPECT_EQ(pages.AskFor("a", [&] { return first(); }), 7);
  FailingPage second(1, Code::kUnavailable);
  EXPECT_EQ(pages.AskFor("b", [&] { return second(); }), 7);
}

TEST(PageRetries, TheLogSaysWhatIsWaitedForEveryTenSeconds) {
  SetUpLog("storage_test", LogLevel::kInfo, LogFormat::kText);
  PageRetryOptions options = Quick();
  options.store = "https://store/images";
  options.first_patience = std::chrono::minutes(1);
  options.backoff = {.first = Duration::zero(), .limit = Duration::zero()};
  ManualClock clock;
  PageRetries pages(options, clock);
  FailingPage slow(7, Code::kUnavailable);
  testing::internal::CaptureStderr();
  const Result<int> answer = pages.AskFor("a", [&] {
    clock.Advance(std::chrono::seconds(6));
    return slow();
  });
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer, 7);
  EXPECT_THAT(log, HasSubstr("waiting for the store store=https://store/images requests=1 "
                             "for_s=12 patience_s=60 cause=cause"));
  size_t lines = 0;
  for (size_t at = log.find("waiting"); at != std::string::npos; at = log.find("waiting", at + 1))
    ++lines;
  EXPECT_EQ(lines, 3U) << "after 12, 24 and 36 of 42 seconds";
}

// Two index Jobs of one bucket that is away.
TEST(PageRetries, ProcessesDoNotWaitInStep) {
  const auto waits = [](std::uint64_t seed, std::string_view page) {
    PageRetryOptions options = Quick();
    options.backoff = {};
    options.seed = seed;
    Backoff backoff = PageBackoff(options, page);
    std::vector<Duration> all(5);
    std::ranges::generate(all, [&] { return backoff.Next(); });
    return all;
  };
  EXPECT_NE(waits(1, "a"), waits(2, "a"));
  EXPECT_NE(waits(1, "a"), waits(1, "b"));
  EXPECT_EQ(waits(1, "a"), waits(1, "a"));
}

TEST(PageRetries, ADeadlineEndsIt) {
  PageRetryOptions options = Quick();
  options.deadline = Deadline(SystemClock().Now());
  PageRetries pages(options, SystemClock());
  FailingPage page(1, Code::kUnavailable);
  EXPECT_EQ(pages.AskFor("a", [&] { return page(); }).error().code(), Code::kUnavailable);
  EXPECT_EQ(page.asked(), 1);
}

TEST(PageRetries, StopEndsWaits) {
  PageRetryOptions options = Quick();
  options.backoff = {.first = std::chrono::hours(1), .limit = std::chrono::hours(1)};
  options.first_patience = std::chrono::hours(2);
  options.deadline = Deadline(MonotonicTime::max());
  PageRetries pages(options, SystemClock());
  FailingPage page(1, Code::kUnavailable);
  Result<int> answer = 0;
  {
    const std::jthread asks([&] { answer = pages.AskFor("a", [&] { return page(); }); });
    pages.Stop();
  }
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace optcache::storage::internal
