#include "storage/limiting_store.h"

#include <deque>
#include <map>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_object_store.h"
#include "support/read_waiter.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class LimitingStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open({.gate = {.concurrency = {.max = 2}}}); }
  void Open(LimitingOptions options) {
    auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
    fake_ = fake.get();
    for (const char* path : {"a", "b", "c", "d"})
      fake_->Put(path, "0123");
    store_ = std::make_unique<LimitingStore>(std::move(fake), options);
  }
  ReadRequest Request(std::string object, Duration time = std::chrono::minutes(1)) {
    into_.emplace_back(4, '.');
    return {.object = std::move(object),
            .offset = 0,
            .destination = std::as_writable_bytes(std::span(into_.back())),
            .object_size = 4,
            .validator = {},
            .deadline = Deadline::After(SystemClock(), time)};
  }
  // Its turns come on a thread of the store.
  void AwaitReads(size_t count) {
    const MonotonicTime limit = SystemClock().Now() + std::chrono::minutes(1);
    while (fake_->reads() < count && SystemClock().Now() < limit)
      std::this_thread::yield();
    ASSERT_EQ(fake_->reads(), count);
  }
  double Counter(std::string_view wanted) {
    double found = -1;
    store_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name == wanted) found = value;
        });
    return found;
  }

  std::deque<std::string> into_;
  std::unique_ptr<LimitingStore> store_;
  FakeObjectStore* fake_ = nullptr;  // store_ owns it
};

TEST_F(LimitingStoreTest, ReadsBeyondTheLimitWaitTheirTurnInOrder) {
  ReadWaiter a, b, c, d;
  a.Start(*store_, Request("a"));
  b.Start(*store_, Request("b"));
  EXPECT_FALSE(store_->HasRoom());
  c.Start(*store_, Request("c"));
  d.Start(*store_, Request("d"));
  EXPECT_THAT(fake_->waiting(), ElementsAre("a", "b"));
  EXPECT_EQ(Counter("optcache_store_reads_held_back"), 2);
  ASSERT_TRUE(fake_->Complete("a"));
  AwaitReads(3);
  EXPECT_THAT(fake_->waiting(), ElementsAre("b", "c"));
  ASSERT_TRUE(fake_->Complete("c"));
  AwaitReads(4);
  fake_->CompleteAll();
  for (ReadWaiter* waiter : {&a, &b, &c, &d}) {
    EXPECT_TRUE(waiter->Wait().status.ok());
    EXPECT_EQ(waiter->calls(), 1);
  }
  for (const std::string& bytes : into_)
    EXPECT_EQ(bytes, "0123");
  EXPECT_TRUE(store_->HasRoom());
}

TEST_F(LimitingStoreTest, AReadThatHasNoTurnSaysWhyAndTheStoreDoesNotHearOfIt) {
  Open({.gate = {.concurrency = {.max = 1}}});
  ReadWaiter runs, waits;
  const auto traffic = std::make_shared<Traffic>();
  ReadRequest first = Request("a");
  ReadRequest second = Request("b", milliseconds(1));
  first.destination.set_traffic(traffic);
  second.destination.set_traffic(traffic);
  runs.Start(*store_, std::move(first));
  waits.Start(*store_, std::move(second));
  const ReadOutcome outcome = waits.Wait();
  EXPECT_EQ(outcome.status.code(), Code::kResourceExhausted);
  EXPECT_THAT(outcome.status.message(),
              HasSubstr("b bytes 0-3: not asked for: it was not its turn before its deadline "
                        "(1 of 1 requests at a time, and 1 reads wait)"));
  EXPECT_EQ(traffic->requests, 1U);
  EXPECT_EQ(fake_->reads(), 1U);
  fake_->CompleteAll();
  EXPECT_TRUE(runs.Wait().status.ok());
}

TEST_F(LimitingStoreTest, EachDeadlineOfThoseThatWaitCounts) {
  Open({.gate = {.concurrency = {.max = 1}}});
  ReadWaiter runs, last, first, second;
  runs.Start(*store_, Request("a"));
  last.Start(*store_, Request("b"));
  second.Start(*store_, Request("c", milliseconds(40)));
  first.Start(*store_, Request("d", milliseconds(1)));
  EXPECT_EQ(first.Wait().status.code(), Code::kResourceExhausted);
  EXPECT_EQ(second.Wait().status.code(), Code::kResourceExhausted);
  ASSERT_TRUE(fake_->Complete("a"));
  AwaitReads(2);
  EXPECT_THAT(fake_->waiting(), ElementsAre("b"));
  fake_->CompleteAll();
  EXPECT_TRUE(last.Wait().status.ok());
}

TEST_F(LimitingStoreTest, AnOverloadedStoreGetsFewerAtATime) {
  Open({.gate = {.concurrency = {.max = 2, .decrease_factor = 0.5}}});
  fake_->FailNext("a", {.status = {Code::kUnavailable, "cause"}});
  ReadWaiter a, b, c;
  a.Start(*store_, Request("a"));
  ASSERT_TRUE(fake_->Complete("a"));
  EXPECT_EQ(a.Wait().status.code(), Code::kUnavailable);
  EXPECT_EQ(Counter("optcache_store_concurrency_limit"), 1);
  EXPECT_EQ(Counter("optcache_store_concurrency_decreases_total"), 1);
  b.Start(*store_, Request("b"));
  c.Start(*store_, Request("c"));
  EXPECT_THAT(fake_->waiting(), ElementsAre("b"));
  fake_->CompleteAll();
  AwaitReads(3);
  fake_->CompleteAll();
  EXPECT_TRUE(c.Wait().status.ok());
}

TEST_F(LimitingStoreTest, AReadThatIsSlowButComesIsNoSignOfOverload) {
  fake_->set_completes_at_once(true);
  fake_->FailNext("a", {.status = {Code::kDeadlineExceeded, "slow"}, .received = 3});
  EXPECT_EQ(ReadWaiter().Run(*store_, Request("a")).status.message(), "slow");
  EXPECT_EQ(Counter("optcache_store_concurrency_limit"), 2);
  fake_->FailNext("a", {.status = {Code::kDeadlineExceeded, "nothing came"}});
  EXPECT_EQ(ReadWaiter().Run(*store_, Request("a")).status.message(), "nothing came");
  EXPECT_EQ(Counter("optcache_store_concurrency_limit"), 1);
}

TEST_F(LimitingStoreTest, RetryAfterHoldsAllReadsBack) {
  Open({.gate = {.concurrency = {.max = 2}, .closed_max = milliseconds(20)}});
  fake_->FailNext("a", {.status = {Code::kUnavailable, "cause"}, .retry_after = seconds(1)});
  ReadWaiter a, b;
  a.Start(*store_, Request("a"));
  const MonotonicTime began = SystemClock().Now();
  fake_->CompleteAll();
  b.Start(*store_, Request("b"));
  AwaitReads(2);
  EXPECT_GE(SystemClock().Now() - began, milliseconds(20));
  fake_->CompleteAll();
  EXPECT_TRUE(b.Wait().status.ok());
}

TEST_F(LimitingStoreTest, HoldsReadsBackThatComeTooFast) {
  Open({.gate = {.rates = {.requests_per_second = 50}}});
  fake_->set_completes_at_once(true);
  const MonotonicTime began = SystemClock().Now();
  for (int i = 0; i < 55; ++i)
    EXPECT_TRUE(ReadWaiter().Run(*store_, Request("a")).status.ok());
  EXPECT_GE(SystemClock().Now() - began, milliseconds(100)) << "fifty at once, five at 20 ms each";
}

TEST_F(LimitingStoreTest, AHigherRateLetsWaitingReadsGoOn) {
  Open({.gate = {.rates = {.requests_per_second = 1000}}});
  store_->SetRates({.requests_per_second = 1e-6});
  fake_->set_completes_at_once(true);
  EXPECT_TRUE(ReadWaiter().Run(*store_, Request("a")).status.ok());
  EXPECT_EQ(store_->Rates().held_by_requests, 0U);
  ReadWaiter waits;
  waits.Start(*store_, Request("b"));
  EXPECT_EQ(Counter("optcache_store_reads_held_back"), 1);
  const RateUse held = store_->Rates();
  EXPECT_EQ(held.requests, 1U);
  EXPECT_EQ(held.bytes, 4U);
  EXPECT_EQ(held.most.requests_per_second, 1000);
  EXPECT_EQ(held.in_force.requests_per_second, 1e-6);
  EXPECT_GT(held.held_by_requests, 0U);
  EXPECT_GT(store_->Rates().held_by_requests, held.held_by_requests) << "it still waits";
  EXPECT_EQ(held.held_by_bytes, 0U);
  store_->SetRates({});
  EXPECT_TRUE(waits.Wait().status.ok());
  const RateUse use = store_->Rates();
  EXPECT_EQ(use.requests, 2U);
  EXPECT_EQ(use.in_force.requests_per_second, 1000);
  EXPECT_EQ(store_->Rates().held_by_requests, use.held_by_requests);
}

TEST_F(LimitingStoreTest, BoundsWhatWaits) {
  Open({.gate = {.concurrency = {.max = 1}}, .waiting_max = 1});
  ReadWaiter a, b, c;
  a.Start(*store_, Request("a"));
  b.Start(*store_, Request("b"));
  c.Start(*store_, Request("c"));
  EXPECT_EQ(c.Wait().status.code(), Code::kResourceExhausted);
  fake_->CompleteAll();
  AwaitReads(2);
  fake_->CompleteAll();
  EXPECT_TRUE(b.Wait().status.ok());
}

TEST_F(LimitingStoreTest, ARefusalOfTheInnerStoreMakesRoom) {
  fake_->set_waiting_reads_max(0);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(store_->Read(Request("a"), [](const ReadOutcome&) { FAIL(); }).code(),
              Code::kResourceExhausted);
  }
  EXPECT_TRUE(store_->HasRoom());
}

TEST_F(LimitingStoreTest, ALaterRefusalIsAnOutcome) {
  Open({.gate = {.concurrency = {.max = 1}}});
  ReadWaiter a, b;
  a.Start(*store_, Request("a"));
  b.Start(*store_, Request("b"));
  fake_->set_waiting_reads_max(0);
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(b.Wait().status.code(), Code::kResourceExhausted);
  EXPECT_TRUE(store_->HasRoom());
}

TEST_F(LimitingStoreTest, StatWaitsItsTurnToo) {
  Open({.gate = {.concurrency = {.max = 1}}});
  ReadWaiter a;
  a.Start(*store_, Request("a"));
  const auto none = store_->Stat("b", Deadline::After(SystemClock(), milliseconds(1)));
  EXPECT_EQ(none.error().code(), Code::kResourceExhausted);
  EXPECT_THAT(none.error().message(), HasSubstr("b: not asked for"));
  fake_->CompleteAll();
  const Deadline soon = Deadline::After(SystemClock(), std::chrono::minutes(1));
  EXPECT_EQ(store_->Stat("b", soon).value().size, 4U);
  EXPECT_EQ(store_->List(soon, {}).value().objects.size(), 4U);
  EXPECT_TRUE(store_->HasRoom());
}

TEST_F(LimitingStoreTest, ShutdownCancelsWhatRunsAndWhatWaits) {
  Open({.gate = {.concurrency = {.max = 1}}});
  ReadWaiter runs, waits, late;
  runs.Start(*store_, Request("a"));
  waits.Start(*store_, Request("b"));
  store_->Shutdown();
  EXPECT_EQ(runs.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(waits.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(runs.calls() + waits.calls(), 2);
  late.Start(*store_, Request("c"));
  EXPECT_EQ(late.Wait().status.code(), Code::kCancelled);
}

// Many reads from many threads: each ends once, and never do more run than may.
TEST_F(LimitingStoreTest, KeepsTheLimitUnderThreads) {
  Open({.gate = {.concurrency = {.max = 3}}});
  fake_->set_completes_at_once(true);
  std::deque<ReadWaiter> waiters(400);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < waiters.size(); ++i)
    requests.push_back(Request(i % 2 == 0 ? "a" : "b"));
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = t; i < waiters.size(); i += 4)
          waiters[i].Start(*store_, std::move(requests[i]));
      });
    }
  }
  for (ReadWaiter& waiter : waiters)
    EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_TRUE(store_->HasRoom());
}

}  // namespace
}  // namespace optcache::storage
