#include "base/clock.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache {
namespace {

using std::chrono::seconds;

TEST(Deadline, ExpiresWhenItsTimeHasCome) {
  ManualClock clock;
  const Deadline deadline = Deadline::After(clock, seconds(2));
  EXPECT_FALSE(deadline.Expired(clock.Now()));
  EXPECT_EQ(deadline.Remaining(clock.Now()), seconds(2));
  clock.Advance(seconds(3));
  EXPECT_TRUE(deadline.Expired(clock.Now()));
  EXPECT_EQ(deadline.Remaining(clock.Now()), Duration::zero());
}

}  // namespace
}  // namespace optcache
