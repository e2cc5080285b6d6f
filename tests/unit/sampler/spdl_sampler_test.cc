#include "sampler/spdl_sampler.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

using Ids = std::vector<SampleId>;

TEST(NumpyChoice, GivesEachSampleOnce) {
  // Below, at and above the sizes where numpy changes its method.
  for (const auto& [size, count] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {1, 1}, {10'000, 10'000}, {10'001, 10'001}, {50'000, 999}, {50'000, 1001}}) {
    Ids ids = NumpyChoice(size, count, 3);
    ASSERT_EQ(ids.size(), count);
    std::ranges::sort(ids);
    EXPECT_TRUE(std::ranges::adjacent_find(ids) == ids.end());
    EXPECT_LT(ids.back(), size);
  }
  EXPECT_TRUE(NumpyChoice(5, 0, 3).empty());
}

// numpy.random.default_rng(0).choice(9, 9, replace=False)
TEST(NumpyChoice, GivesNumpysOrder) {
  EXPECT_EQ(NumpyChoice(9, 9, 0), (Ids{0, 8, 3, 7, 2, 5, 4, 6, 1}));
}

TEST(SpdlSampler, CutsToEqualShares) {
  const Recipe recipe{.kind = Kind::kSpdlRandom, .size = 11, .world = 4, .drop_last = true};
  EXPECT_EQ(SpdlOrder(recipe, 5).size(), 8U);
  Recipe seeded = recipe;
  seeded.seed = 5;
  EXPECT_EQ(SpdlOrder(recipe, 5), SpdlOrder(seeded, 0));
}

}  // namespace
}  // namespace optcache::sampler
