#include "storage/retry_budget.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/manual_clock.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RetryBudget, GivesOutWhatWasSavedThenTheFloor) {
  ManualClock clock;
  RetryBudget budget({.share_of_successes = 0.1, .floor_per_second = 2, .saved_max = 3});
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(budget.TryTake(clock.Now()));
  EXPECT_FALSE(budget.TryTake(clock.Now()));
  EXPECT_EQ(budget.UntilNext(clock.Now()), milliseconds(500));
  clock.Advance(milliseconds(500));
  EXPECT_TRUE(budget.TryTake(clock.Now()));
}

TEST(RetryBudget, TenSuccessesPayForOneRetry) {
  ManualClock clock;
  RetryBudget budget({.share_of_successes = 0.1, .floor_per_second = 0, .saved_max = 1});
  ASSERT_TRUE(budget.TryTake(clock.Now()));
  for (int i = 0; i < 9; ++i)
    budget.OnSuccess();
  EXPECT_FALSE(budget.TryTake(clock.Now()));
  budget.OnSuccess();
  EXPECT_TRUE(budget.TryTake(clock.Now()));
}

TEST(RetryBudget, WhatIsGivenBackIsNotSavedBeyondTheBound) {
  ManualClock clock;
  RetryBudget budget({.share_of_successes = 0, .floor_per_second = 0, .saved_max = 1});
  ASSERT_TRUE(budget.TryTake(clock.Now()));
  budget.GiveBack();
  budget.GiveBack();
  EXPECT_TRUE(budget.TryTake(clock.Now()));
  EXPECT_FALSE(budget.TryTake(clock.Now()));
}

// A store whose requests fail by chance, up to all of them, and callers who retry whenever they
// may: whatever happens, retries that fail stay below the share, the floor and what was saved.
TEST(RetryBudget, BoundsRetriesThatFailWhateverHappens) {
  const std::uint64_t seed = TestSeed(412);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    ManualClock clock;
    const RetryBudgetOptions options = {.share_of_successes = random.Unit() / 4,
                                        .floor_per_second = random.Unit() * 20,
                                        .saved_max = 1 + random.Unit() * 50};
    RetryBudget budget(options);
    const MonotonicTime began = clock.Now();
    const double failing = round % 10 == 0 ? 1 : random.Unit();
    double successes = 0;
    double retries = 0;
    double in_vain = 0;
    for (int i = 0; i < 2000; ++i) {
      clock.Advance(milliseconds(random.Below(20)));
      if (random.Unit() >= failing) {
        ++successes;
        budget.OnSuccess();
      } else if (budget.TryTake(clock.Now())) {
        ++retries;
        if (random.Unit() < failing) {
          ++in_vain;
        } else {
          ++successes;
          budget.OnSuccess();
          budget.GiveBack();
        }
      }
    }
    const double elapsed_s = ToSeconds(clock.Now() - began);
    EXPECT_LE(in_vain, options.share_of_successes * successes +
                           options.floor_per_second * elapsed_s + options.saved_max + 1e-6);
    EXPECT_GT(retries, 0);
  }
}

}  // namespace
}  // namespace optcache::storage
