#include "base/log_limit.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache {
namespace {

TEST(LogLimit, PassesOneASecondAndCountsTheOthers) {
  ManualClock clock;
  LogLimit limit;
  EXPECT_EQ(limit.Pass(clock.Now()), 0U);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(limit.Pass(clock.Now()), std::nullopt);
  clock.Advance(std::chrono::milliseconds(999));
  EXPECT_EQ(limit.Pass(clock.Now()), std::nullopt);
  clock.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(limit.Pass(clock.Now()), 1001U);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(limit.Pass(clock.Now()), 0U);
}

}  // namespace
}  // namespace optcache
