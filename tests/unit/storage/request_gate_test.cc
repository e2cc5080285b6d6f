#include "storage/request_gate.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kNone = Duration::zero();

class RequestGateTest : public testing::Test {
 protected:
  void End(RequestGate& gate, Code code, Duration retry_after = kNone) {
    gate.OnEnd(gate.OnStart(1, clock_.Now()),
               code == Code::kOk ? OkStatus() : Status(code, "cause"), retry_after, clock_.Now());
  }
  ManualClock clock_;
};

TEST_F(RequestGateTest, LetsThroughAsManyAsAllowedAtATime) {
  RequestGate gate({.concurrency = {.max = 2}});
  const auto ticket = gate.OnStart(1, clock_.Now());
  EXPECT_TRUE(gate.MayStart(clock_.Now()));
  gate.OnStart(1, clock_.Now());
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), std::nullopt);  // another has to end
  gate.OnEnd(ticket, OkStatus(), kNone, clock_.Now());
  EXPECT_TRUE(gate.MayStart(clock_.Now()));
}

TEST_F(RequestGateTest, ClosesUntilTheTimeThatTheStoreAskedFor) {
  RequestGate gate({});
  const auto first = gate.OnStart(1, clock_.Now());
  const auto second = gate.OnStart(1, clock_.Now());
  gate.OnEnd(first, {Code::kUnavailable, "cause"}, seconds(3), clock_.Now());
  gate.OnEnd(second, {Code::kUnavailable, "cause"}, seconds(1), clock_.Now());  // not sooner
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + seconds(3));
  EXPECT_EQ(gate.Describe(clock_.Now()),
            "44 of 64 requests at a time, none for 3.0 s, as the store asked");
  clock_.Advance(milliseconds(2999));
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  clock_.Advance(milliseconds(1));
  EXPECT_TRUE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), std::nullopt);
  EXPECT_EQ(gate.Describe(clock_.Now()), "44 of 64 requests at a time");
}

TEST_F(RequestGateTest, DoesNotBelieveAnyRetryAfter) {
  RequestGate gate({.closed_max = seconds(60)});
  End(gate, Code::kUnavailable, std::chrono::hours(24 * 365));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + seconds(60));
}

TEST_F(RequestGateTest, OnlySomeErrorsMeanThatTheStoreIsOverloaded) {
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded}) {
    RequestGate gate({});
    End(gate, code);
    EXPECT_EQ(gate.concurrency().decreases(), 1U) << CodeName(code);
  }
  for (const Code code :
       {Code::kOk, Code::kNotFound, Code::kConflict, Code::kDataLoss, Code::kPermissionDenied,
        Code::kInvalidArgument, Code::kCancelled, Code::kResourceExhausted, Code::kInternal}) {
    RequestGate gate({});
    End(gate, code);
    EXPECT_EQ(gate.concurrency().decreases(), 0U) << CodeName(code);
    EXPECT_EQ(gate.concurrency().running(), 0U);
  }
}

TEST_F(RequestGateTest, KeepsToARateOfRequests) {
  RequestGate gate({.rates = {.requests_per_second = 4}});
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(gate.MayStart(clock_.Now()));
    gate.OnStart(1000, clock_.Now());
  }
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + milliseconds(250));
  EXPECT_EQ(gate.Describe(clock_.Now()), "64 of 64 requests at a time, 4 a second");
  clock_.Advance(milliseconds(250));
  EXPECT_TRUE(gate.MayStart(clock_.Now()));
}

TEST_F(RequestGateTest, KeepsToARateOfBytesAlsoWhereOneRequestIsMore) {
  RequestGate gate({.rates = {.bytes_per_second = 1000}});
  gate.OnStart(3500, clock_.Now());
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + milliseconds(2500));
  EXPECT_EQ(gate.Describe(clock_.Now()), "64 of 64 requests at a time, 1000 B a second");
  clock_.Advance(milliseconds(2500));
  EXPECT_TRUE(gate.MayStart(clock_.Now()));
}

TEST_F(RequestGateTest, OfSeveralReasonsTheLastOneOpensIt) {
  RequestGate gate({.rates = {.requests_per_second = 1, .bytes_per_second = 100}});
  gate.OnEnd(gate.OnStart(400, clock_.Now()), {Code::kUnavailable, "cause"}, seconds(2),
             clock_.Now());
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + seconds(3));
}

TEST_F(RequestGateTest, KeepsToANewRateFromNowOn) {
  RequestGate gate({.rates = {.requests_per_second = 100, .bytes_per_second = 1000}});
  gate.SetRates({.requests_per_second = 2, .bytes_per_second = 500}, clock_.Now());
  EXPECT_EQ(gate.rates(), (StoreRates{.requests_per_second = 2, .bytes_per_second = 500}));
  EXPECT_EQ(gate.Describe(clock_.Now()), "64 of 64 requests at a time, 2 a second, 500 B a second");
  for (int i = 0; i < 2; ++i) {  // what was saved up for the old rate is gone
    ASSERT_TRUE(gate.MayStart(clock_.Now()));
    gate.OnStart(100, clock_.Now());
  }
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + milliseconds(500));
  EXPECT_EQ(gate.started(), 2U);
  EXPECT_EQ(gate.started_bytes(), 200U);
  gate.SetRates({.requests_per_second = 4, .bytes_per_second = 500}, clock_.Now());
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + milliseconds(250));
}

TEST_F(RequestGateTest, NeverHasMoreThanItWasMadeWith) {
  RequestGate gate({.rates = {.requests_per_second = 10}});
  gate.SetRates({.requests_per_second = 500, .bytes_per_second = 7}, clock_.Now());
  EXPECT_EQ(gate.rates(), (StoreRates{.requests_per_second = 10}));
  gate.SetRates({.requests_per_second = 0.5}, clock_.Now());
  EXPECT_EQ(gate.rates(), (StoreRates{.requests_per_second = 0.5}));
  gate.SetRates({}, clock_.Now());
  EXPECT_EQ(gate.rates(), (StoreRates{.requests_per_second = 10}));
  RequestGate free({});
  free.SetRates({.requests_per_second = 1, .bytes_per_second = 1}, clock_.Now());
  EXPECT_EQ(free.rates(), StoreRates{});
}

TEST_F(RequestGateTest, SaysWhichRateHoldsBackWhereNothingElseDoes) {
  RequestGate gate(
      {.concurrency = {.max = 2}, .rates = {.requests_per_second = 5, .bytes_per_second = 500}});
  gate.SetRates({.requests_per_second = 1, .bytes_per_second = 100}, clock_.Now());
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_requests);
  const auto first = gate.OnStart(100, clock_.Now());
  EXPECT_TRUE(gate.HeldBackBy(clock_.Now()).by_requests);
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_bytes);
  gate.OnStart(50, clock_.Now());
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_requests) << "two of two run";
  gate.OnEnd(first, OkStatus(), kNone, clock_.Now());
  EXPECT_TRUE(gate.HeldBackBy(clock_.Now()).by_requests);
  EXPECT_TRUE(gate.HeldBackBy(clock_.Now()).by_bytes);
  clock_.Advance(seconds(3));
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_requests);
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_bytes);
}

TEST_F(RequestGateTest, LooksAgainInAnHourWhereARateIsAlmostNothing) {
  RequestGate gate({.rates = {.requests_per_second = 1, .bytes_per_second = 1}});
  gate.SetRates({.requests_per_second = 1e-300, .bytes_per_second = 1e-9}, clock_.Now());
  gate.OnStart(1'000'000, clock_.Now());
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + std::chrono::hours(1));
  clock_.Advance(std::chrono::hours(1));
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
  EXPECT_EQ(gate.OpensAt(clock_.Now()), clock_.Now() + std::chrono::hours(1));
}

// It would take no more, since it never has more.
TEST_F(RequestGateTest, IsNotHeldBackByTheRateThatItWasMadeWith) {
  RequestGate gate({.rates = {.requests_per_second = 2, .bytes_per_second = 100}});
  gate.SetRates({.requests_per_second = 1, .bytes_per_second = 200}, clock_.Now());
  gate.OnStart(300, clock_.Now());
  EXPECT_TRUE(gate.HeldBackBy(clock_.Now()).by_requests);
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_bytes);
  gate.SetRates({}, clock_.Now());
  EXPECT_FALSE(gate.HeldBackBy(clock_.Now()).by_requests);
  EXPECT_FALSE(gate.MayStart(clock_.Now()));
}

// Requests of any size that are sent as soon as they may be: over any time since the beginning, no
// more than the rate allows, what was saved for a second, and the last one; and the store is not
// kept waiting either.
TEST_F(RequestGateTest, KeepsItsRatesOverAnyTime) {
  const std::uint64_t seed = TestSeed(418);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    const StoreRates rates = {.requests_per_second = 0.5 + 200 * random.Unit(),
                              .bytes_per_second = 100 + 1e6 * random.Unit()};
    RequestGate gate({.concurrency = {.max = 4}, .rates = rates});
    const MonotonicTime began = clock_.Now();
    double requests = 0;
    double bytes = 0;
    for (int i = 0; i < 500; ++i) {
      if (const auto at = gate.OpensAt(clock_.Now())) clock_.Advance(*at - clock_.Now());
      ASSERT_TRUE(gate.MayStart(clock_.Now()));
      const ByteCount size = random.Below(100'000);
      const double elapsed_s = ToSeconds(clock_.Now() - began);
      ASSERT_LE(requests, std::max(rates.requests_per_second, 1.0) +
                              rates.requests_per_second * elapsed_s + 1e-6);
      ASSERT_LE(bytes, rates.bytes_per_second * (1 + elapsed_s) + 1e-3);
      gate.OnEnd(gate.OnStart(size, clock_.Now()), OkStatus(), kNone, clock_.Now());
      ++requests;
      bytes += static_cast<double>(size);
    }
    const double elapsed_s = ToSeconds(clock_.Now() - began);
    EXPECT_TRUE(requests >= 0.9 * rates.requests_per_second * elapsed_s ||
                bytes >= 0.9 * rates.bytes_per_second * elapsed_s);
  }
}

}  // namespace
}  // namespace optcache::storage
