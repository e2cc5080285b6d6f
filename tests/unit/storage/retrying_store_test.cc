#include "storage/retrying_store.h"

#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "support/fake_object_store.h"
#include "support/growing_deadline.h"
#include "support/manual_clock.h"
#include "support/read_waiter.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ReadOutcome Failed(Code code, Duration retry_after = Duration::zero()) {
  return {.status = {code, "cause"}, .retry_after = retry_after};
}

constexpr RetryBudgetOptions kAmple = {.floor_per_second = 1e6, .saved_max = 1e6};
constexpr RetryBudgetOptions kOneForHours = {
    .share_of_successes = 0, .floor_per_second = 1e-4, .saved_max = 1};

class RetryingStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open({}); }
  void Open(RetryOptions options) {
    options.backoff = {.first = milliseconds(1), .limit = milliseconds(2)};
    auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
    fake_ = fake.get();
    fake_->Put("a", "0123");
    fake_->set_completes_at_once(true);
    store_ = std::make_unique<RetryingStore>(std::move(fake), options);
  }
  ReadRequest Request(Duration time = std::chrono::minutes(1)) {
    into_.assign(4, '.');
    return {.object = "a",
            .offset = 0,
            .destination = std::as_writable_bytes(std::span(into_)),
            .object_size = 4,
            .validator = {},
            .deadline = Deadline::After(SystemClock(), time)};
  }
  ReadOutcome Run(ReadRequest request) { return ReadWaiter().Run(*store_, std::move(request)); }
  std::map<std::string, double> Counters() {
    std::map<std::string, double> counters;
    store_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          std::string key(name);
          for (const auto& [label, text] : labels) {
            if (label == "code") key += "." + text;
          }
          counters[key] = value;
        });
    return counters;
  }

  std::string into_;
  std::unique_ptr<RetryingStore> store_;
  FakeObjectStore* fake_ = nullptr;  // store_ owns it
};

TEST_F(RetryingStoreTest, TriesAgainUntilItSucceeds) {
  for (int i = 0; i < 3; ++i)
    fake_->FailNext("a", Failed(Code::kUnavailable));
  const ReadOutcome outcome = Run(Request());
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.attempts, 4U);
  EXPECT_EQ(into_, "0123");
}

// However often it fails: broken answers, too, of which nothing can be kept.
TEST_F(RetryingStoreTest, PatienceIsTimeAndNotAttempts) {
  Open({.budget = kAmple});
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded, Code::kDataLoss}) {
    for (int i = 0; i < 40; ++i)
      fake_->FailNext("a", Failed(code));
    const ReadOutcome outcome = Run(Request());
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
    EXPECT_EQ(outcome.attempts, 41U);
  }
}

ReadOutcome Differing(std::string message) {
  return {.status = {Code::kDataLoss, std::move(message)}, .sums_differ = true};
}

// By a cache on the way, say: so the second read is past caches.
TEST_F(RetryingStoreTest, WhatHasOtherChecksumsIsReadOnceMore) {
  fake_->FailNext("a", Differing("a bytes 0-3: sum"));
  fake_->FailNext("a", Failed(Code::kUnavailable));
  const ReadOutcome outcome = Run(Request());
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(outcome.attempts, 3U);
  EXPECT_EQ(fake_->fresh_reads(), 2U);
  EXPECT_EQ(into_, "0123");
}

TEST_F(RetryingStoreTest, WhatHasOtherChecksumsTwiceIsRefused) {
  fake_->FailNext("a", Differing("a bytes 0-3: sum"));
  fake_->FailNext("a", Failed(Code::kUnavailable));
  fake_->FailNext("a", Differing("a bytes 0-3: another"));
  const ReadOutcome outcome = Run(Request());
  EXPECT_EQ(outcome.status.code(), Code::kDataLoss);
  EXPECT_EQ(outcome.status.message(),
            "fake://bucket: attempt 3: a bytes 0-3: another; nor was it at a second read: put the "
            "object into the store again, or find the cache, proxy or network that damages it on "
            "the way");
  EXPECT_EQ(outcome.attempts, 3U);
  EXPECT_EQ(Counters().at("optcache_store_errors_total.data_loss"), 2.0);
}

TEST_F(RetryingStoreTest, TheFinalErrorNamesStoreObjectRangeAttemptAndCause) {
  fake_->FailNext("a", Failed(Code::kUnavailable));
  fake_->FailNext("a", {.status = {Code::kNotFound, "a bytes 0-3: cause"}});
  const ReadOutcome outcome = Run(Request());
  EXPECT_EQ(outcome.status.code(), Code::kNotFound);
  EXPECT_EQ(outcome.status.message(), "fake://bucket: attempt 2: a bytes 0-3: cause");
  EXPECT_EQ(outcome.attempts, 2U);
}

TEST_F(RetryingStoreTest, PatienceEndsAndTheErrorSaysHowLongItWas) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(250), [&](Duration patience) {
    Open({.patience = patience, .budget = kAmple});
    for (int i = 0; i < 50'000; ++i)
      fake_->FailNext("a", {.status = {Code::kUnavailable, "a bytes 0-3: cause"}});
    const ReadOutcome outcome = Run(Request());
    EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
    EXPECT_THAT(outcome.status.message(),
                testing::MatchesRegex("fake://bucket: attempt [0-9]+: given up: nothing of it came "
                                      "for .* s, which is the patience: a bytes 0-3: cause"));
    if (patience == milliseconds(250)) {
      EXPECT_THAT(outcome.status.message(), testing::HasSubstr(" for 0.25 s, "));
    }
    return outcome.attempts >= 2;
  }));
}

// Though it has waited longer than its patience is, for its turn.
TEST_F(RetryingStoreTest, WaitingForItsTurnCostsNoPatience) {
  Open({.patience = Duration::zero()});
  fake_->FailNext("a", {.status = {Code::kUnavailable, "cause"}, .held_back = seconds(60)});
  EXPECT_TRUE(Run(Request()).status.ok());
}

// Each attempt brings a byte and takes more than half of what patience there is.
TEST(RetryingStore, ProgressBeginsPatienceAgain) {
  auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
  FakeObjectStore& inner = *fake;
  inner.Put("a", "0123");
  for (int i = 0; i < 3; ++i)
    inner.FailNext("a", {.status = {Code::kUnavailable, "cut"}, .received = 1, .filled = 1});
  ManualClock clock;
  RetryingStore store(std::move(fake), {.patience = seconds(10)}, clock);
  std::string into(4, '.');
  ReadWaiter waiter;
  waiter.Start(store, {.object = "a",
                       .offset = 0,
                       .destination = std::as_writable_bytes(std::span(into)),
                       .object_size = 4,
                       .validator = {},
                       .deadline = Deadline::After(clock, std::chrono::hours(1))});
  for (int i = 0; i < 4; ++i) {
    clock.Advance(seconds(6));
    while (!inner.CompleteNext())
      std::this_thread::yield();
  }
  EXPECT_TRUE(waiter.Wait().status.ok());
}

// As of a server that sends wrong ranges behind a proxy that cuts answers: a byte comes, the rest
// does not fit it, and the same byte comes again.
TEST(RetryingStore, BytesThatCameBeforeAreNoProgress) {
  constexpr int kRounds = 20;
  auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
  FakeObjectStore& inner = *fake;
  inner.Put("a", "0123");
  for (int i = 0; i < kRounds; ++i) {
    inner.FailNext("a", {.status = {Code::kUnavailable, "cut"}, .received = 1, .filled = 1});
    inner.FailNext("a", {.status = {Code::kDataLoss, "another range"}, .received = 3});
  }
  ManualClock clock;
  RetryingStore store(std::move(fake), {.patience = seconds(10), .budget = kAmple}, clock);
  std::string into(4, '.');
  ReadWaiter waiter;
  waiter.Start(store, {.object = "a",
                       .offset = 0,
                       .destination = std::as_writable_bytes(std::span(into)),
                       .object_size = 4,
                       .validator = {},
                       .deadline = Deadline::After(clock, std::chrono::hours(24))});
  int answered = 0;
  while (waiter.calls() == 0 && answered < 2 * kRounds) {
    clock.Advance(seconds(4));
    while (waiter.calls() == 0 && !inner.CompleteNext())
      std::this_thread::yield();
    ++answered;
  }
  EXPECT_LT(answered, kRounds);
  store.Shutdown();
  EXPECT_THAT(waiter.Wait().status.message(), testing::HasSubstr("which is the patience"));
}

TEST_F(RetryingStoreTest, SaysWhenAReadWaitsAndWhenItIsTriedAgain) {
  for (int i = 0; i < 2; ++i)
    fake_->FailNext("a", Failed(Code::kUnavailable));
  std::vector<bool> told;
  ReadRequest request = Request();
  request.on_wait = [&](bool waits) { told.push_back(waits); };
  EXPECT_TRUE(Run(std::move(request)).status.ok());
  EXPECT_THAT(told, testing::ElementsAre(true, false, true, false));
}

TEST_F(RetryingStoreTest, KnowsWhatIsWaitedForAndWhy) {
  Open({.patience = std::chrono::hours(1)});
  EXPECT_EQ(store_->Waits(), StoreWaits());
  fake_->FailNext("a", Failed(Code::kUnavailable, std::chrono::hours(1)));
  ReadWaiter waiter;
  waiter.Start(*store_, Request(std::chrono::hours(1)));
  EXPECT_EQ(store_->Waits().requests, 1U);
  EXPECT_EQ(store_->Waits().cause, "cause");
  EXPECT_GT(Counters().at("optcache_store_wait_seconds"), 0);
  store_->Shutdown();
  EXPECT_EQ(store_->Waits(), StoreWaits());
}

TEST_F(RetryingStoreTest, TheLogNamesAttemptsThatFailed) {
  SetUpLog("storage_test", LogLevel::kInfo, LogFormat::kText);
  fake_->FailNext("a", Failed(Code::kUnavailable));
  fake_->FailNext("a", Failed(Code::kConflict));
  testing::internal::CaptureStderr();
  EXPECT_EQ(Run(Request()).status.code(), Code::kConflict);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, testing::HasSubstr("store=fake://bucket object=a bytes=0-3 attempt=1 "
                                      "code=unavailable cause=cause"));
  EXPECT_THAT(log, testing::HasSubstr("attempt=2 code=conflict"));
}

TEST_F(RetryingStoreTest, DoesNotRepeatWhatWillNotGetBetter) {
  fake_->FailNext("a", Failed(Code::kConflict));
  EXPECT_EQ(Run(Request()).status.code(), Code::kConflict);
  EXPECT_EQ(fake_->reads(), 1U);
}

TEST_F(RetryingStoreTest, DoesNotWaitForWhatComesTooLate) {
  Open({.patience = seconds(59)});
  fake_->FailNext("a", Failed(Code::kUnavailable, std::chrono::hours(1)));
  const ReadOutcome outcome = Run(Request());
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_THAT(outcome.status.message(),
              testing::ContainsRegex("attempt 1: given up: the store asks to wait for 60.0 s, "
                                     "patience ends in 5[0-9].. s: cause"));
  EXPECT_EQ(fake_->reads(), 1U);
}

TEST_F(RetryingStoreTest, AnAttemptEndsBySilenceAndNotByTime) {
  const ReadRequest request = Request();
  ASSERT_TRUE(Run(request).status.ok());
  EXPECT_EQ(fake_->last_deadline().at(), request.deadline.at());
  EXPECT_EQ(fake_->last_silence_max(), seconds(20));
}

// The two bytes that came are not asked for again.
TEST_F(RetryingStoreTest, GoesOnWhereTheAttemptBeforeEnded) {
  for (int i = 0; i < 3; ++i)
    fake_->FailNext("a", {.status = {Code::kDataLoss, "cut"}, .received = 1, .filled = 1});
  ReadRequest request = Request();
  into_ = "abc.";
  const ReadOutcome outcome = Run(std::move(request));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(into_, "abc3");
}

TEST_F(RetryingStoreTest, BeginsAnewWhereTheRestCannotBeHad) {
  fake_->FailNext("a", {.status = {Code::kUnavailable, "reset"}, .received = 2, .filled = 2});
  fake_->FailNext("a", Failed(Code::kInvalidArgument));  // the server ignores ranges
  EXPECT_TRUE(Run(Request()).status.ok());
  EXPECT_EQ(into_, "0123");
  fake_->FailNext("a", Failed(Code::kInvalidArgument));
  EXPECT_EQ(Run(Request()).status.code(), Code::kInvalidArgument) << "of a whole read it is final";
}

TEST_F(RetryingStoreTest, ARefusalOfALaterAttemptIsAnOutcome) {
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(100), [&](Duration patience) {
    Open({.patience = patience});
    fake_->set_completes_at_once(false);
    fake_->FailNext("a", Failed(Code::kUnavailable));
    ReadWaiter waiter;
    waiter.Start(*store_, Request());
    fake_->set_waiting_reads_max(0);
    EXPECT_TRUE(fake_->CompleteNext());
    // Else patience was over when the first attempt ended.
    return waiter.Wait().status.code() == Code::kResourceExhausted;
  }));
}

TEST_F(RetryingStoreTest, ARefusalOfTheFirstAttemptIsTheCallersAtOnce) {
  fake_->set_waiting_reads_max(0);
  EXPECT_EQ(store_->Read(Request(), [](const ReadOutcome&) { FAIL(); }).code(),
            Code::kResourceExhausted);
  EXPECT_EQ(Counters().at("optcache_store_reads_in_flight"), 0);
}

TEST_F(RetryingStoreTest, BoundsItsReads) {
  Open({.reads_max = 1});
  fake_->set_completes_at_once(false);
  ReadWaiter waiter;
  waiter.Start(*store_, Request());
  EXPECT_EQ(Run(Request()).status.code(), Code::kResourceExhausted);
  fake_->CompleteAll();
  EXPECT_TRUE(waiter.Wait().status.ok());
}

TEST_F(RetryingStoreTest, ShutdownCancelsReadsThatRunAndReadsThatWaitForARetry) {
  fake_->Put("b", "0123");
  fake_->set_completes_at_once(false);
  fake_->FailNext("a", Failed(Code::kUnavailable, seconds(30)));
  ReadWaiter waits;
  ReadWaiter runs;
  waits.Start(*store_, Request());
  ReadRequest other = Request();
  other.object = "b";
  runs.Start(*store_, std::move(other));
  ASSERT_TRUE(fake_->Complete("a"));
  store_->Shutdown();
  EXPECT_EQ(waits.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(runs.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(waits.calls() + runs.calls(), 2);
  EXPECT_EQ(Run(Request()).status.code(), Code::kCancelled);
}

TEST_F(RetryingStoreTest, ARetryWaitsForTheBudgetThatAllReadsShare) {
  Open({.budget = {.share_of_successes = 0, .floor_per_second = 1000, .saved_max = 1}});
  for (int i = 0; i < 4; ++i)
    fake_->FailNext("a", Failed(Code::kUnavailable));
  const ReadOutcome outcome = Run(Request());
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(outcome.attempts, 5U);
  EXPECT_EQ(Counters().at("optcache_store_retries_total"), 4);
}

TEST_F(RetryingStoreTest, AnEmptyBudgetIsNamedInTheError) {
  Open({.budget = {.share_of_successes = 0.1, .floor_per_second = 0, .saved_max = 2}});
  for (int i = 0; i < 4; ++i)
    fake_->FailNext("a", {.status = {Code::kUnavailable, "a bytes 0-3: cause"}});
  EXPECT_EQ(Counters().at("optcache_store_retries_left"), 2);
  const ReadOutcome outcome = Run(Request());
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_EQ(outcome.status.message(),
            "fake://bucket: attempt 3: not tried again: too many reads of this store fail, "
            "and the retry budget (10 % of the reads that succeed, and 0 a second) is empty: a "
            "bytes 0-3: cause");
  EXPECT_EQ(outcome.attempts, 3U);
  const auto counters = Counters();
  EXPECT_EQ(counters.at("optcache_store_retries_total"), 2);
  EXPECT_EQ(counters.at("optcache_store_retries_delayed_total"), 1);
  EXPECT_EQ(counters.at("optcache_store_retries_left"), 0);
  EXPECT_EQ(counters.at("optcache_store_reads_in_flight"), 0);
}

TEST_F(RetryingStoreTest, SuccessesPayForRetries) {
  Open({.budget = {.share_of_successes = 0.5, .floor_per_second = 0, .saved_max = 1}});
  const auto fails = [&](int times) {
    for (int i = 0; i < times; ++i)
      fake_->FailNext("a", Failed(Code::kUnavailable));
    return !Run(Request()).status.ok();
  };
  EXPECT_TRUE(fails(2));   // the retry took what was saved, and failed
  EXPECT_TRUE(fails(1));   // at once: nothing is left
  EXPECT_FALSE(fails(0));  // and brings a half
  EXPECT_TRUE(fails(1));
  EXPECT_FALSE(fails(0));  // the other half
  EXPECT_FALSE(fails(1));
}

// What is there brings back all of them, one after the other: by time alone it takes hours.
TEST_F(RetryingStoreTest, ARetryThatSucceedsCostsNothing) {
  Open({.patience = std::chrono::hours(24), .budget = kOneForHours});
  std::deque<ReadWaiter> waiters(50);
  std::deque<std::string> buffers(waiters.size(), "....");
  for (size_t i = 0; i < waiters.size(); ++i) {
    ReadRequest request = Request(std::chrono::hours(24));
    request.object = std::to_string(i);
    request.destination = std::as_writable_bytes(std::span(buffers[i]));
    fake_->Put(request.object, "0123");
    fake_->FailNext(request.object, Failed(Code::kUnavailable));
    waiters[i].Start(*store_, std::move(request));
  }
  for (ReadWaiter& waiter : waiters)
    ASSERT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(Counters().at("optcache_store_retries_total"), 50);
}

TEST_F(RetryingStoreTest, OfReadsThatWaitForTheBudgetTheOldestGoesFirst) {
  Open({.patience = std::chrono::hours(24), .budget = kOneForHours});
  fake_->set_completes_at_once(false);
  std::map<std::string, ReadWaiter> waiters;
  for (const std::string path : {"taker", "first", "second", "third"}) {
    fake_->Put(path, "0123");
    fake_->FailNext(path, Failed(Code::kUnavailable));
    ReadRequest request = Request(std::chrono::hours(24));
    request.object = path;
    waiters[path].Start(*store_, std::move(request));
  }
  const auto next_retry = [&] {
    while (fake_->waiting().empty())
      std::this_thread::yield();
    return fake_->waiting();
  };
  ASSERT_TRUE(fake_->Complete("taker"));
  for (const char* path : {"third", "first", "second"})
    ASSERT_TRUE(fake_->Complete(path));
  // The one retry that there is may be any of them.
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) {
    const std::vector<std::string> retried = next_retry();
    ASSERT_EQ(retried.size(), 1U);
    order.push_back(retried.front());
    while (i == 0 && Counters().at("optcache_store_retries_delayed_total") < 3)
      std::this_thread::yield();
    ASSERT_TRUE(fake_->CompleteNext());
  }
  std::vector<std::string> oldest_first = {"taker", "first", "second", "third"};
  std::erase(oldest_first, order.front());
  order.erase(order.begin());
  EXPECT_EQ(order, oldest_first);
  for (auto& [path, waiter] : waiters)
    EXPECT_TRUE(waiter.Wait().status.ok());
}

// The cache's own limit refused the retry, so the store has not heard of it.
TEST_F(RetryingStoreTest, ARetryThatIsNotSentCostsNothing) {
  Open({.patience = std::chrono::hours(24), .budget = kOneForHours});
  fake_->FailNext("a", Failed(Code::kUnavailable));
  fake_->FailNext("a", Failed(Code::kResourceExhausted));
  fake_->FailNext("a", Failed(Code::kUnavailable));
  EXPECT_TRUE(Run(Request(std::chrono::hours(24))).status.ok());
  EXPECT_EQ(Counters().at("optcache_store_retries_delayed_total"), 0);
}

TEST_F(RetryingStoreTest, WhatTheStoreHasNotHeardOfTakesNothingOfTheBudget) {
  Open({.budget = {.share_of_successes = 0, .floor_per_second = 0, .saved_max = 0}});
  fake_->FailNext("a", Failed(Code::kResourceExhausted));
  EXPECT_TRUE(Run(Request()).status.ok());
}

TEST_F(RetryingStoreTest, ShutdownEndsWhatWaitsForTheBudget) {
  Open({.patience = std::chrono::hours(1),
        .budget = {.share_of_successes = 0, .floor_per_second = 1e-3, .saved_max = 1}});
  for (int i = 0; i < 2; ++i)
    fake_->FailNext("a", Failed(Code::kUnavailable));
  ReadWaiter waiter;
  ReadRequest request = Request();
  request.deadline = Deadline::After(SystemClock(), std::chrono::hours(1));
  waiter.Start(*store_, std::move(request));
  store_->Shutdown();
  EXPECT_EQ(waiter.Wait().status.code(), Code::kCancelled);
}

TEST_F(RetryingStoreTest, Counts) {
  fake_->FailNext("a", Failed(Code::kUnavailable));
  ASSERT_TRUE(Run(Request()).status.ok());
  fake_->FailNext("a", Failed(Code::kNotFound));
  ASSERT_FALSE(Run(Request()).status.ok());
  const auto counters = Counters();
  EXPECT_EQ(counters.at("optcache_store_reads_total"), 1);
  EXPECT_EQ(counters.at("optcache_store_read_bytes_total"), 4);
  EXPECT_EQ(counters.at("optcache_store_retries_total"), 1);
  EXPECT_EQ(counters.at("optcache_store_errors_total.not_found"), 1);
  EXPECT_EQ(counters.at("optcache_store_errors_total.unavailable"), 1);
  EXPECT_EQ(counters.at("optcache_store_reads_in_flight"), 0);
}

}  // namespace
}  // namespace optcache::storage
