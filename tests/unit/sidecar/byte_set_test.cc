#include "sidecar/s3/byte_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::sidecar {
namespace {

TEST(ByteSet, CountsEachByteOnce) {
  ByteSet set;
  set.Add({.first = 10, .length = 10});
  set.Add({.first = 15, .length = 10});
  EXPECT_EQ(set.count(), 15U);
  set.Add({.first = 30, .length = 5});
  set.Add({.first = 0, .length = 100});
  EXPECT_EQ(set.count(), 100U);
}

TEST(ByteSet, CountsAsATableOfAllBytesDoes) {
  constexpr std::size_t kBytes = 64;
  const std::uint64_t seed = TestSeed(17);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    ByteSet set;
    std::vector<bool> table(kBytes);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t first = random.Below(kBytes);
      const std::uint64_t length = random.Below(std::min<std::uint64_t>(kBytes - first, 9) + 1);
      std::fill_n(table.begin() + static_cast<std::ptrdiff_t>(first), length, true);
      set.Add({.first = first, .length = length});
      ASSERT_EQ(set.count(), static_cast<ByteCount>(std::ranges::count(table, true)));
    }
  }
}

TEST(ByteSet, HasALimit) {
  ByteSet set;
  for (ByteCount i = 0; i <= ByteSet::kStretchesMax; ++i)
    set.Add({.first = 2 * i, .length = 1});
  EXPECT_EQ(set.count(), ByteSet::kStretchesMax);
  set.Add({.first = 0, .length = 3 * ByteSet::kStretchesMax});
  EXPECT_EQ(set.count(), 3 * ByteSet::kStretchesMax) << "one that joins others has its place";
}

}  // namespace
}  // namespace optcache::sidecar
