#include "base/check.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(CheckDeathTest, NamesTheConditionAndThePlace) {
  const int samples = 0;
  EXPECT_DEATH(CHECK(samples > 0), "check_test.cc:[0-9]+: CHECK failed: samples > 0");
}

TEST(Check, EvaluatesItsConditionOnce) {
  int evaluations = 0;
  CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace optcache
