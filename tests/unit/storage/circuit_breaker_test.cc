#include "storage/circuit_breaker.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr CircuitBreakerOptions kSmallBreaker = {
    .failures_min = 3, .failing_min = seconds(5), .first_wait = seconds(1), .wait_max = seconds(4)};

class CircuitBreakerTest : public testing::Test {
 protected:
  bool One(CircuitBreaker::End end) {
    const auto request = breaker_.Start(clock_.Now());
    EXPECT_TRUE(request.has_value());
    return breaker_.OnEnd(*request, end, clock_.Now());
  }
  void OpenIt() {
    One(CircuitBreaker::End::kFailed);
    clock_.Advance(seconds(5));
    One(CircuitBreaker::End::kFailed);
    EXPECT_TRUE(One(CircuitBreaker::End::kFailed));
  }
  CircuitBreaker breaker_{kSmallBreaker};
  ManualClock clock_;
};

TEST_F(CircuitBreakerTest, OpensAfterManyFailuresForLong) {
  OpenIt();
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kOpen);
  EXPECT_EQ(breaker_.Start(clock_.Now()), std::nullopt);
  EXPECT_EQ(breaker_.probe_at(), clock_.Now() + seconds(1));
  EXPECT_EQ(breaker_.failing_since(), clock_.Now() - seconds(5));
  EXPECT_EQ(breaker_.times_opened(), 1U);
}

TEST_F(CircuitBreakerTest, ManyFailuresAtOnceOrFewForLongDoNotOpenIt) {
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(One(CircuitBreaker::End::kFailed));
  CircuitBreaker slow(kSmallBreaker);
  for (int i = 0; i < 2; ++i) {
    slow.OnEnd(*slow.Start(clock_.Now()), CircuitBreaker::End::kFailed, clock_.Now());
    clock_.Advance(seconds(100));
  }
  EXPECT_EQ(slow.state(), CircuitBreaker::State::kClosed);
}

TEST_F(CircuitBreakerTest, OneAnswerBeginsTheCountAnew) {
  for (int i = 0; i < 10; ++i) {
    One(CircuitBreaker::End::kFailed);
    clock_.Advance(seconds(4));
    One(CircuitBreaker::End::kFailed);
    One(CircuitBreaker::End::kAnswered);
  }
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kClosed);
  for (int i = 0; i < 10; ++i) {
    One(CircuitBreaker::End::kUnknown);
    clock_.Advance(seconds(10));
  }
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kClosed);
}

TEST_F(CircuitBreakerTest, LetsOneProbeThroughAtATime) {
  OpenIt();
  clock_.Advance(milliseconds(999));
  EXPECT_EQ(breaker_.Start(clock_.Now()), std::nullopt);
  clock_.Advance(milliseconds(1));
  EXPECT_EQ(breaker_.Start(clock_.Now()), CircuitBreaker::Request::kProbe);
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kHalfOpen);
  clock_.Advance(seconds(100));
  EXPECT_EQ(breaker_.Start(clock_.Now()), std::nullopt);
  EXPECT_TRUE(breaker_.OnEnd(CircuitBreaker::Request::kProbe, CircuitBreaker::End::kAnswered,
                             clock_.Now()));
  EXPECT_EQ(breaker_.Start(clock_.Now()), CircuitBreaker::Request::kRegular);
}

TEST_F(CircuitBreakerTest, WaitsTwiceAsLongAfterEachProbeThatFails) {
  OpenIt();
  for (const int wait_s : {1, 2, 4, 4, 4}) {
    EXPECT_EQ(breaker_.probe_at(), clock_.Now() + seconds(wait_s));
    clock_.Advance(seconds(wait_s));
    EXPECT_FALSE(One(CircuitBreaker::End::kFailed));
  }
  clock_.Advance(seconds(4));
  EXPECT_TRUE(One(CircuitBreaker::End::kAnswered));
  OpenIt();
  EXPECT_EQ(breaker_.probe_at(), clock_.Now() + seconds(1)) << "the first wait again";
}

TEST_F(CircuitBreakerTest, AProbeThatWasGivenUpIsMadeAgain) {
  OpenIt();
  clock_.Advance(seconds(1));
  EXPECT_FALSE(One(CircuitBreaker::End::kUnknown));
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kOpen);
  EXPECT_EQ(breaker_.probe_at(), clock_.Now() + seconds(1));
}

TEST_F(CircuitBreakerTest, RequestsFromBeforeItOpened) {
  OpenIt();
  clock_.Advance(seconds(1));
  ASSERT_EQ(breaker_.Start(clock_.Now()), CircuitBreaker::Request::kProbe);
  EXPECT_FALSE(breaker_.OnEnd(CircuitBreaker::Request::kRegular, CircuitBreaker::End::kFailed,
                              clock_.Now()));
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kHalfOpen) << "a late failure is no news";
  EXPECT_TRUE(breaker_.OnEnd(CircuitBreaker::Request::kRegular, CircuitBreaker::End::kAnswered,
                             clock_.Now()));
  EXPECT_EQ(breaker_.state(), CircuitBreaker::State::kClosed) << "a late answer is";
}

TEST(BreakerEndOf, TellsTheStoresFailuresFromOtherErrors) {
  for (const Code code : {Code::kUnavailable, Code::kDeadlineExceeded})
    EXPECT_EQ(BreakerEndOf(code), CircuitBreaker::End::kFailed);
  for (const Code code : {Code::kCancelled, Code::kResourceExhausted})
    EXPECT_EQ(BreakerEndOf(code), CircuitBreaker::End::kUnknown);
  for (const Code code : {Code::kOk, Code::kNotFound, Code::kConflict, Code::kDataLoss,
                          Code::kPermissionDenied, Code::kInvalidArgument, Code::kInternal})
    EXPECT_EQ(BreakerEndOf(code), CircuitBreaker::End::kAnswered);
}

// A store that goes away and comes back at random, asked all the time by requests that end later: a
// store that is away for long gets a handful of probes, and one that answers is never given up for
// longer than the longest wait.
TEST(CircuitBreaker, SparesADeadStoreAndFindsItAgain) {
  const std::uint64_t seed = TestSeed(417);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    ManualClock clock;
    CircuitBreaker breaker({});
    bool away = false;
    MonotonicTime turns = clock.Now();
    MonotonicTime turned = turns;
    int asked_while_away = 0;
    struct Running {
      CircuitBreaker::Request request;
      MonotonicTime ends;
      bool fails;
    };
    std::deque<Running> running;
    for (int step = 0; step < 60000; ++step) {
      clock.Advance(milliseconds(10));
      const MonotonicTime now = clock.Now();
      if (now >= turns) {
        if (away) {
          const double away_s = ToSeconds(now - turned);
          // All of the first seconds, then probes after 1, 2, 4, 8, 16, 30, 30 ... seconds.
          EXPECT_LE(asked_while_away, 100 * 6 + 6 + away_s / 30);
        }
        away = !away;
        asked_while_away = 0;
        turned = now;
        turns = now + seconds(1 + random.Below(120));
      }
      while (!running.empty() && running.front().ends <= now) {
        const Running& one = running.front();
        breaker.OnEnd(one.request,
                      one.fails ? CircuitBreaker::End::kFailed : CircuitBreaker::End::kAnswered,
                      now);
        running.pop_front();
      }
      const auto request = breaker.Start(now);
      if (request) {
        running.push_back({*request, now + milliseconds(200), away});
        asked_while_away += away ? 1 : 0;
      }
      if (!away && now - turned > seconds(31)) {
        EXPECT_EQ(breaker.state(), CircuitBreaker::State::kClosed);
      }
    }
  }
}

}  // namespace
}  // namespace optcache::storage
