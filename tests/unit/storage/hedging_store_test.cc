#include "storage/hedging_store.h"

#include <atomic>
#include <deque>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/limiting_store.h"
#include "support/fake_object_store.h"
#include "support/read_waiter.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

// Everything is late after a millisecond; each read earns a hedge.
constexpr HedgeOptions kEager = {.extra_share = 1,
                                 .saved_max = 100,
                                 .late_quantile = 0,
                                 .late_medians = 0,
                                 .late_min = milliseconds(1),
                                 .measured_min = 1};

class HedgingStoreTest : public testing::Test {
 protected:
  void SetUp() override { Open(kEager); }
  void Open(HedgeOptions options) {
    auto fake = std::make_unique<FakeObjectStore>("fake://bucket");
    fake_ = fake.get();
    fake_->Put("a", "0123");
    fake_->Put("b", "4567");
    std::unique_ptr<ObjectStore> inner = std::move(fake);
    if (limited_) {
      inner = std::make_unique<LimitingStore>(std::move(inner),
                                              LimitingOptions{.gate = {.concurrency = {.max = 8}}});
    }
    store_ = std::make_unique<HedgingStore>(std::move(inner), options,
                                            [this] { return has_room_.load(); });
    // The first read is measured, not hedged.
    fake_->set_completes_at_once(true);
    EXPECT_TRUE(ReadWaiter().Run(*store_, Request("b")).status.ok());
    fake_->set_completes_at_once(false);
  }
  ReadRequest Request(std::string object) {
    into_.emplace_back(4, '.');
    return {.object = std::move(object),
            .offset = 0,
            .destination = std::as_writable_bytes(std::span(into_.back())),
            .object_size = 4,
            .validator = {},
            .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))};
  }
  // Until so many requests wait in the store.
  void AwaitRequests(size_t count) {
    const MonotonicTime limit = SystemClock().Now() + std::chrono::minutes(1);
    while (fake_->waiting().size() < count && SystemClock().Now() < limit)
      std::this_thread::yield();
    ASSERT_EQ(fake_->waiting().size(), count);
  }
  double Hedges(std::string_view result) {
    double found = 0;
    store_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == "optcache_store_hedges_total" && labels.back().second == result) {
            found = value;
          }
        });
    return found;
  }

  std::deque<std::string> into_;
  std::atomic<bool> has_room_ = true;
  bool limited_ = false;  // requests pass a gate, which counts them
  std::unique_ptr<HedgingStore> store_;
  FakeObjectStore* fake_ = nullptr;  // store_ owns it
};

TEST_F(HedgingStoreTest, TheFirstRequestMayWin) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(into_.back(), "0123");
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(waiter.calls(), 1);
  EXPECT_EQ(Hedges("lost"), 1);
  EXPECT_EQ(Hedges("won"), 0);
}

TEST_F(HedgingStoreTest, TheSecondRequestMayWinAndTheFirstWritesNothingThen) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  ASSERT_TRUE(fake_->CompleteNewest());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(into_.back(), "0123");
  into_.back() = "mine";
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(into_.back(), "mine");
  EXPECT_EQ(waiter.calls(), 1);
  EXPECT_EQ(Hedges("won"), 1);
}

TEST_F(HedgingStoreTest, SecondRequestsAndTheirBytesAreCountedToo) {
  limited_ = true;
  Open(kEager);
  ReadWaiter waiter;
  ReadRequest request = Request("a");
  const auto traffic = std::make_shared<Traffic>();
  request.destination.set_traffic(traffic);
  waiter.Start(*store_, std::move(request));
  AwaitRequests(2);
  ASSERT_TRUE(fake_->CompleteNewest());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(traffic->requests, 2U);
  EXPECT_EQ(traffic->arrived, 4U);
  fake_->CompleteAll();
}

TEST_F(HedgingStoreTest, ScatteredDestinationsAreFilledBySecondRequestsToo) {
  ReadWaiter waiter;
  ReadRequest request = Request("a");
  std::string other = "..";
  request.destination = {};
  request.destination.Add(std::as_writable_bytes(std::span(into_.back()).first(1)));
  request.destination.Skip(1);
  request.destination.Add(std::as_writable_bytes(std::span(other)));
  waiter.Start(*store_, std::move(request));
  AwaitRequests(2);
  ASSERT_TRUE(fake_->CompleteNewest());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(into_.back(), "0...");
  EXPECT_EQ(other, "23");
  fake_->CompleteAll();
}

TEST_F(HedgingStoreTest, AFirstRequestThatFailsWaitsForTheSecond) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  fake_->FailNext("a", {.status = {Code::kUnavailable, "cause"}});
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(waiter.calls(), 0);
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(into_.back(), "0123");
}

TEST_F(HedgingStoreTest, ASecondRequestThatFailsLeavesItToTheFirst) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  fake_->FailNext("a", {.status = {Code::kNotFound, "cause"}});
  ASSERT_TRUE(fake_->CompleteNewest());
  EXPECT_EQ(waiter.calls(), 0);
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_TRUE(waiter.Wait().status.ok());
  EXPECT_EQ(Hedges("lost"), 1);
}

TEST_F(HedgingStoreTest, WhenBothFailTheErrorSaysSo) {
  for (const bool first_fails_first : {true, false}) {
    ReadWaiter waiter;
    waiter.Start(*store_, Request("a"));
    AwaitRequests(2);
    for (const char* cause : {"one", "other"})
      fake_->FailNext("a", {.status = {Code::kUnavailable, cause}});
    ASSERT_TRUE(first_fails_first ? fake_->CompleteNext() : fake_->CompleteNewest());
    EXPECT_EQ(waiter.calls(), 0);
    ASSERT_TRUE(fake_->CompleteNext());
    const ReadOutcome outcome = waiter.Wait();
    EXPECT_EQ(outcome.status.code(), Code::kUnavailable);
    EXPECT_THAT(outcome.status.message(),
                testing::MatchesRegex(first_fails_first ? "one .and once more, .* ms later: other."
                                                        : "other .and once more, .* later: one."));
    EXPECT_EQ(waiter.calls(), 1);
  }
}

TEST_F(HedgingStoreTest, AnErrorThatTheSecondWouldMeetTooEndsTheRead) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  fake_->FailNext("a", {.status = {Code::kNotFound, "cause"}});
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(waiter.Wait().status.code(), Code::kNotFound);
  ASSERT_TRUE(fake_->CompleteNext());
  EXPECT_EQ(waiter.calls(), 1);
}

TEST_F(HedgingStoreTest, WaitsForRoom) {
  has_room_ = false;
  ReadWaiter a, b;
  a.Start(*store_, Request("a"));
  b.Start(*store_, Request("b"));
  EXPECT_THAT(fake_->waiting(), ElementsAre("a", "b"));
  has_room_ = true;
  AwaitRequests(4);
  fake_->CompleteAll();
  EXPECT_TRUE(a.Wait().status.ok());
  EXPECT_TRUE(b.Wait().status.ok());
}

TEST_F(HedgingStoreTest, ARefusedSecondRequestIsOneThatFails) {
  fake_->set_waiting_reads_max(1);
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  const MonotonicTime limit = SystemClock().Now() + std::chrono::minutes(1);
  while (Hedges("lost") < 1 && SystemClock().Now() < limit)
    std::this_thread::yield();
  EXPECT_EQ(Hedges("lost"), 1);
  fake_->CompleteAll();
  EXPECT_TRUE(waiter.Wait().status.ok());
}

TEST_F(HedgingStoreTest, ARefusedFirstRequestIsTheCallers) {
  fake_->set_waiting_reads_max(0);
  EXPECT_EQ(store_->Read(Request("a"), [](const ReadOutcome&) { FAIL(); }).code(),
            Code::kResourceExhausted);
}

TEST_F(HedgingStoreTest, ShutdownCancelsBoth) {
  ReadWaiter waiter;
  waiter.Start(*store_, Request("a"));
  AwaitRequests(2);
  store_->Shutdown();
  EXPECT_EQ(waiter.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(waiter.calls(), 1);
  EXPECT_EQ(ReadWaiter().Run(*store_, Request("a")).status.code(), Code::kCancelled);
}

TEST_F(HedgingStoreTest, StatAndListPass) {
  const Deadline soon = Deadline::After(SystemClock(), std::chrono::minutes(1));
  EXPECT_EQ(store_->Stat("a", soon).value().size, 4U);
  EXPECT_EQ(store_->List(soon, {}).value().objects.size(), 2U);
}

// First and second requests end on several threads in any order.
TEST_F(HedgingStoreTest, EachReadEndsOnceWithItsBytesUnderThreads) {
  std::deque<ReadWaiter> waiters(300);
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < waiters.size(); ++i)
    requests.push_back(Request(i % 2 == 0 ? "a" : "b"));
  std::atomic<bool> stop = false;
  {
    std::vector<std::jthread> enders;
    for (int t = 0; t < 2; ++t) {
      enders.emplace_back([&, t] {
        while (!stop) {
          if (!(t == 0 ? fake_->CompleteNext() : fake_->CompleteNewest()))
            std::this_thread::yield();
        }
      });
    }
    for (size_t i = 0; i < waiters.size(); ++i)
      waiters[i].Start(*store_, std::move(requests[i]));
    for (ReadWaiter& waiter : waiters)
      EXPECT_TRUE(waiter.Wait().status.ok());
    stop = true;
  }
  store_->Shutdown();
  for (size_t i = 0; i < waiters.size(); ++i) {
    EXPECT_EQ(into_[i + 1], i % 2 == 0 ? "0123" : "4567");  // the fixture has read once
    EXPECT_EQ(waiters[i].calls(), 1);
  }
}

}  // namespace
}  // namespace optcache::storage
