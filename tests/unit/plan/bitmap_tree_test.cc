#include "plan/bitmap_tree.h"

#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

TEST(BitmapTree, BehavesAsASet) {
  for (const std::uint32_t range : {1U, 64U, 65U, 4096U, 4097U, 300'000U}) {
    SCOPED_TRACE("range and seed " + std::to_string(range));
    Random random(range);
    BitmapTree tree(range);
    std::set<std::uint32_t> set;
    for (int i = 0; i < 20'000; ++i) {
      const auto element = static_cast<std::uint32_t>(random.Below(range));
      if (random.Below(2) == 0) {
        tree.Insert(element);
        set.insert(element);
      } else {
        tree.Erase(element);
        set.erase(element);
      }
      ASSERT_EQ(tree.Contains(element), set.contains(element));
      ASSERT_EQ(tree.empty(), set.empty());
      if (!set.empty()) {
        ASSERT_EQ(tree.Max(), *set.rbegin());
      }
    }
  }
}

TEST(BitmapTree, OfNothingIsEmpty) {
  const BitmapTree tree(0);
  EXPECT_TRUE(tree.empty());
}

}  // namespace
}  // namespace optcache::plan
