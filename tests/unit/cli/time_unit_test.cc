#include "cli/terminal/time_unit.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(TimeUnit, IsTheLargestThatIsNotAbove) {
  EXPECT_EQ(UnitFor(.0004).name, "ms");
  EXPECT_EQ(UnitFor(.4).name, "ms");
  EXPECT_EQ(UnitFor(1).name, "s");
  EXPECT_EQ(UnitFor(-90).name, "min");
  EXPECT_EQ(UnitFor(36'000).name, "h");
}

TEST(TimeUnit, AsManyDecimalsAsShowTheDigits) {
  const TimeUnit ms{.seconds = .001, .name = "ms"};
  EXPECT_EQ(DecimalsFor(.01, ms, 2), 0);
  EXPECT_EQ(DecimalsFor(.002, ms, 2), 1);
  EXPECT_EQ(DecimalsFor(.000'04, ms, 2), 3);
  EXPECT_EQ(DecimalsFor(0, ms, 2), 3);
}

TEST(TimeUnit, NothingHasNoSign) {
  const TimeUnit hours{.seconds = 3600, .name = "h"};
  EXPECT_EQ(InUnit(-1, hours, 2), "0.00 h");
  EXPECT_EQ(InUnit(-12'000, hours, 2), "-3.33 h");
  EXPECT_EQ(InUnit(36'000, hours, 0), "10 h");
}

}  // namespace
}  // namespace optcache::cli
