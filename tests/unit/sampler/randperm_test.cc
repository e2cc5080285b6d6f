#include "sampler/randperm.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

// The two algorithms as one writes them down, with the standard library's generator.
std::vector<SampleId> PlainRandperm(std::uint64_t n, Randperm variant, std::mt19937& generator) {
  std::vector<SampleId> order(n);
  std::iota(order.begin(), order.end(), SampleId{0});
  if (variant == Randperm::kNarrow) {
    for (std::uint64_t i = 0; i + 1 < n; ++i)
      std::swap(order[i], order[i + generator() % (n - i)]);
    return order;
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t high = generator();
    const std::uint64_t place = ((high << 32U) + generator()) % (i + 1);
    order[i] = order[place];
    order[place] = static_cast<SampleId>(i);
  }
  return order;
}

class RandpermVariants : public testing::TestWithParam<Randperm> {};

TEST_P(RandpermVariants, ShufflesAsThePlainAlgorithm) {
  for (const std::uint64_t n :
       {0U, 1U, 2U, 3U, 10U, 127U, 128U, 129U, 130U, 255U, 256U, 257U, 258U, 5000U}) {
    Mt19937 generator(42);
    std::mt19937 standard(42);
    ASSERT_EQ(MakeRandperm(n, GetParam(), generator), PlainRandperm(n, GetParam(), standard)) << n;
  }
}

TEST_P(RandpermVariants, IsAPermutation) {
  Mt19937 generator(1);
  std::vector<SampleId> order = MakeRandperm(10'000, GetParam(), generator);
  std::ranges::sort(order);
  for (SampleId i = 0; i < order.size(); ++i)
    ASSERT_EQ(order[i], i);
}

TEST_P(RandpermVariants, DrawsAsManyWordsAsItSays) {
  for (const std::uint64_t n : {0U, 1U, 2U, 129U, 1000U}) {
    Mt19937 shuffling(3);
    Mt19937 skipping(3);
    (void)MakeRandperm(n, GetParam(), shuffling);
    skipping.Discard(RandpermWords(n, GetParam()));
    ASSERT_EQ(shuffling.Next(), skipping.Next()) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(Randperm, RandpermVariants,
                         testing::Values(Randperm::kNarrow, Randperm::kWide));

TEST(Randperm, ModernVersionsDrawWideFromTheirLimitOn) {
  EXPECT_EQ(RandpermOf(kWideRandpermFrom - 1, true), Randperm::kNarrow);
  EXPECT_EQ(RandpermOf(kWideRandpermFrom, true), Randperm::kWide);
  EXPECT_EQ(RandpermOf(kWideRandpermFrom, false), Randperm::kNarrow);
}

}  // namespace
}  // namespace optcache::sampler
