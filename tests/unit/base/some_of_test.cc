#include "base/some_of.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(SomeOf, NamesTheFirstAndCountsTheRest) {
  EXPECT_EQ(SomeOf({}), "");
  EXPECT_EQ(SomeOf({"a"}), "a");
  EXPECT_EQ(SomeOf({"a", "b", "c"}, 3), "a, b, c");
  EXPECT_EQ(SomeOf({"a", "b", "c"}, 2), "a, b and 1 more");
}

}  // namespace
}  // namespace optcache
