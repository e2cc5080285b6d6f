#include "storage/breaking_store.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/retrying_store.h"
#include "support/fake_object_store.h"
#include "support/manual_clock.h"
#include "support/read_waiter.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr CircuitBreakerOptions kQuickBreaker = {.failures_min = 2, .failing_min = seconds(5)};

ReadRequest RequestFor(std::string& into) {
  into.assign(4, '.');
  return {.object = "a",
          .offset = 0,
          .destination = std::as_writable_bytes(std::span(into)),
          .object_size = 4,
          .validator = {},
          .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
}

class BreakingStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
    fake_ = fake.get();
    fake_->Put("a", "0123");
    fake_->set_completes_at_once(true);
    store_ = std::make_unique<BreakingStore>(std::move(fake), kQuickBreaker, clock_);
  }
  ReadOutcome Run() { return ReadWaiter().Run(*store_, RequestFor(into_)); }
  void OpenIt() {
    for (int i = 0; i < 2; ++i) {
      fake_->FailNext("a", {.status = {Code::kUnavailable, "a bytes 0-3: refused"}});
      EXPECT_EQ(Run().status.message(), "a bytes 0-3: refused");
      clock_.Advance(seconds(5));
    }
    clock_.Advance(milliseconds(500) - seconds(5));
  }
  double Counter(std::string_view wanted) {
    double found = -1;
    store_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name == wanted) found = value;
        });
    return found;
  }

  ManualClock clock_;
  std::string into_;
  std::unique_ptr<BreakingStore> store_;
  FakeObjectStore* fake_ = nullptr;  // store_ owns it
};

TEST_F(BreakingStoreTest, AStoreThatIsGoneIsNotAsked) {
  OpenIt();
  const ReadOutcome outcome = Run();
  EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
  EXPECT_EQ(outcome.status.message(),
            "a bytes 0-3: not asked: the store fake://bucket has answered nothing for 6 s, it will "
            "be tried again in 0.5 s (last: a bytes 0-3: refused)");
  EXPECT_EQ(fake_->reads(), 2U);
  const Deadline soon = Deadline::After(SystemClock(), std::chrono::minutes(1));
  EXPECT_EQ(store_->Stat("a", soon).error().code(), Code::kUnavailable);
  EXPECT_EQ(store_->List(soon, {}).error().code(), Code::kUnavailable);
  EXPECT_EQ(Counter("optcache_store_breaker_state"), 2);
  EXPECT_EQ(Counter("optcache_store_breaker_opened_total"), 1);
}

// It is slow, or its connections break, but it is there.
TEST_F(BreakingStoreTest, AStoreFromWhichBytesComeIsNotGone) {
  for (int i = 0; i < 4; ++i) {
    fake_->FailNext("a", {.status = {Code::kDeadlineExceeded, "slow"}, .received = 3});
    EXPECT_EQ(Run().status.message(), "slow");
    clock_.Advance(seconds(5));
  }
  EXPECT_TRUE(Run().status.ok());
}

TEST_F(BreakingStoreTest, OneReadProbesAndItsAnswerOpensTheWay) {
  OpenIt();
  clock_.Advance(milliseconds(500));
  fake_->set_completes_at_once(false);
  ReadWaiter probe;
  probe.Start(*store_, RequestFor(into_));
  EXPECT_EQ(Counter("optcache_store_breaker_state"), 1);
  std::string other;
  const Status refused = store_->Read(RequestFor(other), [](const ReadOutcome&) { FAIL(); });
  EXPECT_THAT(refused.message(), HasSubstr("it is being tried now"));
  fake_->CompleteAll();
  EXPECT_TRUE(probe.Wait().status.ok());
  fake_->set_completes_at_once(true);
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(Counter("optcache_store_breaker_state"), 0);
}

TEST_F(BreakingStoreTest, SaysWhetherItAnswersAndWhyNot) {
  EXPECT_EQ(store_->Health().state, StoreHealth::State::kUntried);
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(store_->Health().state, StoreHealth::State::kAnswers);
  OpenIt();
  const StoreHealth health = store_->Health();
  EXPECT_EQ(health.state, StoreHealth::State::kSilent);
  EXPECT_EQ(health.silent_for, milliseconds(5500));
  EXPECT_EQ(health.cause, "a bytes 0-3: refused");
  clock_.Advance(milliseconds(500));
  EXPECT_TRUE(Run().status.ok());
  EXPECT_EQ(store_->Health().state, StoreHealth::State::kAnswers);
}

TEST_F(BreakingStoreTest, NobodyKnowsOfAStoreThatNobodyAsksAnyMore) {
  OpenIt();
  clock_.Advance(milliseconds(500) + kStaleAfter - milliseconds(1));
  EXPECT_EQ(store_->Health().state, StoreHealth::State::kSilent);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(store_->Health().state, StoreHealth::State::kUntried);
}

TEST_F(BreakingStoreTest, ItsRetriesSayTheSame) {
  auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
  fake->Put("a", "0123");
  fake->set_completes_at_once(true);
  RetryingStore store(std::make_unique<BreakingStore>(std::move(fake), kQuickBreaker, clock_), {});
  EXPECT_EQ(store.Health().state, StoreHealth::State::kUntried);
  EXPECT_TRUE(ReadWaiter().Run(store, RequestFor(into_)).status.ok());
  EXPECT_EQ(store.Health().state, StoreHealth::State::kAnswers);
}

TEST_F(BreakingStoreTest, ARefusalByTheInnerStoreSaysNothingOfIt) {
  fake_->set_waiting_reads_max(0);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Run().status.code(), Code::kResourceExhausted);
    clock_.Advance(seconds(5));
  }
  EXPECT_EQ(Counter("optcache_store_breaker_state"), 0);
}

TEST_F(BreakingStoreTest, StatAndListProbeToo) {
  OpenIt();
  clock_.Advance(milliseconds(500));
  const Deadline soon = Deadline::After(SystemClock(), std::chrono::minutes(1));
  EXPECT_TRUE(store_->Stat("a", soon).has_value());
  EXPECT_TRUE(store_->List(soon, {}).has_value());
}

TEST_F(BreakingStoreTest, CancelsAtShutdown) {
  fake_->set_completes_at_once(false);
  ReadWaiter waiter;
  waiter.Start(*store_, RequestFor(into_));
  store_->Shutdown();
  EXPECT_EQ(waiter.Wait().status.code(), Code::kCancelled);
}

// Attempts of one read open it; then it makes probes, of which most fail, too. They cost it
// nothing.
TEST(BreakingStore, ReadersWaitUntilTheStoreIsBack) {
  auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
  FakeObjectStore& inner = *fake;
  inner.Put("a", "0123");
  inner.set_completes_at_once(true);
  for (int i = 0; i < 20; ++i)
    inner.FailNext("a", {.status = {Code::kUnavailable, "a bytes 0-3: refused"}});
  const CircuitBreakerOptions breaker = {.failures_min = 2,
                                         .failing_min = Duration::zero(),
                                         .first_wait = milliseconds(5),
                                         .wait_max = milliseconds(10)};
  RetryingStore store(std::make_unique<BreakingStore>(std::move(fake), breaker),
                      {.backoff = {.first = milliseconds(1), .limit = milliseconds(2)},
                       .gone_wait = milliseconds(1)});
  std::string into;
  const ReadOutcome outcome = ReadWaiter().Run(store, RequestFor(into));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
  EXPECT_EQ(into, "0123");
  EXPECT_EQ(outcome.attempts, 21U);
  EXPECT_EQ(inner.reads(), 21U);
}

TEST(BreakingStore, ShutdownEndsReadsThatWaitForTheStore) {
  auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
  fake->set_completes_at_once(true);
  for (int i = 0; i < 2; ++i)
    fake->FailNext("a", {.status = {Code::kUnavailable, "a bytes 0-3: refused"}});
  const CircuitBreakerOptions breaker = {
      .failures_min = 1, .failing_min = Duration::zero(), .first_wait = std::chrono::hours(1)};
  RetryingStore store(std::make_unique<BreakingStore>(std::move(fake), breaker),
                      {.backoff = {.first = milliseconds(1), .limit = milliseconds(2)}});
  std::string into;
  ReadWaiter waiter;
  waiter.Start(store, RequestFor(into));
  store.Shutdown();
  EXPECT_EQ(waiter.Wait().status.code(), Code::kCancelled);
}

}  // namespace
}  // namespace optcache::storage
