#include "plan/sizes.h"

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

TEST(Sizes, GivesEachSamplesBytes) {
  const Sizes sizes({3, 5, 4});
  EXPECT_FALSE(sizes.equal());
  EXPECT_EQ(sizes.count(), 3U);
  EXPECT_EQ(sizes[1], 5U);
  EXPECT_EQ(sizes.total(), 12U);
}

TEST(Sizes, AListOfOneSizeIsEqual) {
  const Sizes sizes({4, 4, 4});
  EXPECT_TRUE(sizes.equal());
  EXPECT_EQ(sizes[2], 4U);
  EXPECT_EQ(sizes.total(), Sizes::Equal(3, 4).total());
}

TEST(Sizes, MayBeEmpty) {
  EXPECT_EQ(Sizes(std::vector<std::uint32_t>{}).count(), 0U);
}

}  // namespace
}  // namespace optcache::plan
