#include "storage/token_bucket.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TokenBucket, BeginsWithWhatItIsGivenAndFillsByTime) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 10, .per_second = 2, .initial = 1});
  EXPECT_TRUE(bucket.TryTake(1, clock.Now()));
  EXPECT_FALSE(bucket.TryTake(1, clock.Now()));
  EXPECT_EQ(bucket.Until(1, clock.Now()), milliseconds(500));
  clock.Advance(milliseconds(500));
  EXPECT_EQ(bucket.Until(1, clock.Now()), Duration::zero());
  EXPECT_TRUE(bucket.TryTake(1, clock.Now()));
}

TEST(TokenBucket, SavesUpNoMoreThanItsCapacity) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 3, .per_second = 100, .initial = 50});
  EXPECT_EQ(bucket.Balance(clock.Now()), 3);
  clock.Advance(seconds(10));
  bucket.Add(7);
  EXPECT_EQ(bucket.Balance(clock.Now()), 3);
  EXPECT_EQ(bucket.Until(4, clock.Now()), Duration::max());
}

TEST(TokenBucket, KeepsWhatIsThereAtANewRateAsFarAsThereIsRoom) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 8, .per_second = 8, .initial = 2});
  EXPECT_EQ(bucket.Balance(clock.Now()), 2);
  clock.Advance(milliseconds(500));
  bucket.SetRate(4, 1, clock.Now());
  EXPECT_EQ(bucket.Balance(clock.Now()), 4) << "six, and room for four";
  bucket.Take(5, clock.Now());
  bucket.SetRate(8, 2, clock.Now());
  EXPECT_EQ(bucket.Until(1, clock.Now()), seconds(1));
}

TEST(TokenBucket, WhatWasTakenOnCreditComesInFirst) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 1, .per_second = 10, .initial = 1});
  bucket.Take(6, clock.Now());
  EXPECT_EQ(bucket.Balance(clock.Now()), -5);
  EXPECT_EQ(bucket.Until(0, clock.Now()), milliseconds(500));
  clock.Advance(milliseconds(500));
  EXPECT_EQ(bucket.Until(0, clock.Now()), Duration::zero());
}

TEST(TokenBucket, WithoutARateOnlyEventsFillIt) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 2, .per_second = 0, .initial = 0});
  clock.Advance(seconds(1000));
  EXPECT_EQ(bucket.Until(1, clock.Now()), Duration::max());
  for (int i = 0; i < 10; ++i)
    bucket.Add(0.1);
  EXPECT_TRUE(bucket.TryTake(1, clock.Now()));  // though ten tenths are a little less than one
}

TEST(TokenBucket, ATimeThatGoesBackBringsNothing) {
  ManualClock clock;
  TokenBucket bucket({.capacity = 9, .per_second = 1, .initial = 0});
  EXPECT_EQ(bucket.Balance(clock.Now()), 0);
  const MonotonicTime later = clock.Now() + seconds(2);
  EXPECT_EQ(bucket.Balance(later), 2);
  EXPECT_EQ(bucket.Balance(clock.Now()), 2);
  EXPECT_EQ(bucket.Balance(later), 2);
}

// Whoever waits as long as he is told finds what he waited for, and not a nanosecond's worth less
// than the rate allows is given out.
TEST(TokenBucket, TheWaitIsExactAndTheRateIsKept) {
  const std::uint64_t seed = TestSeed(411);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 200; ++round) {
    ManualClock clock;
    const double rate = 0.1 + random.Unit() * 5000;
    const double capacity = 1 + random.Unit() * 20;
    TokenBucket bucket({.capacity = capacity, .per_second = rate, .initial = capacity});
    const MonotonicTime began = clock.Now();
    double given = 0;
    for (int i = 0; i < 100; ++i) {
      const double want = random.Unit() * capacity;
      clock.Advance(bucket.Until(want, clock.Now()));
      ASSERT_TRUE(bucket.TryTake(want, clock.Now()));
      given += want;
    }
    const double elapsed_s = ToSeconds(clock.Now() - began);
    EXPECT_LE(given, capacity + rate * elapsed_s + 1e-6);
  }
}

}  // namespace
}  // namespace optcache::storage
