#include "cache/home_map.h"

#include <map>

#include <gtest/gtest.h>

namespace optcache::cache {
namespace {

TEST(HomeMap, DoesNotDependOnTheOrderOfMembers) {
  const HomeMap one(7, {1, 2, 3});
  const HomeMap other(7, {3, 1, 2});
  for (SampleId id = 0; id < 1000; ++id)
    EXPECT_EQ(one.Home(id), other.Home(id));
}

TEST(HomeMap, SharesEvenly) {
  const HomeMap homes(7, {10, 11, 12, 13});
  std::map<MemberId, int> share;
  for (SampleId id = 0; id < 40000; ++id)
    ++share[homes.Home(id)];
  for (const auto& [member, count] : share)
    EXPECT_NEAR(count, 10000, 400) << member;
}

TEST(HomeMap, AMemberThatLeavesMovesOnlyItsOwn) {
  const HomeMap before(7, {1, 2, 3, 4});
  const HomeMap after(7, {1, 2, 4});
  for (SampleId id = 0; id < 10000; ++id) {
    if (before.Home(id) != 3) {
      EXPECT_EQ(after.Home(id), before.Home(id));
    }
  }
}

}  // namespace
}  // namespace optcache::cache
