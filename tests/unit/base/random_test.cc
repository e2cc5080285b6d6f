#include "base/random.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

// The published first outputs of SplitMix64 for seed 1234567.
TEST(Random, MatchesSplitMix64) {
  Random random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317ULL);
  EXPECT_EQ(random.Next(), 3203168211198807973ULL);
}

TEST(Random, UnitStaysBelowOne) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const double u = random.Unit();
    EXPECT_GE(u, 0.0);
    EXPECT_LT(u, 1.0);
  }
}

}  // namespace
}  // namespace optcache
