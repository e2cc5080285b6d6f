#include "sampler/pcg64.h"

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

// numpy.random.default_rng(seed).bit_generator.random_raw()
TEST(Pcg64, MakesNumpysWords) {
  Pcg64 zero(0);
  EXPECT_EQ(zero.Next64(), 11749869230777074271ULL);
  EXPECT_EQ(zero.Next64(), 4976686463289251617ULL);
  Pcg64 large(0x123456789abcdef0ULL);
  EXPECT_EQ(large.Next64(), 3766508136411593918ULL);
}

TEST(Pcg64, GivesHalvesLowFirst) {
  Pcg64 words(7);
  Pcg64 halves(7);
  const std::uint64_t word = words.Next64();
  EXPECT_EQ(halves.Next32(), static_cast<std::uint32_t>(word));
  EXPECT_EQ(halves.Next32(), static_cast<std::uint32_t>(word >> 32U));
  EXPECT_EQ(halves.Next32(), static_cast<std::uint32_t>(words.Next64()));
}

TEST(Pcg64, StaysWithinItsBounds) {
  Pcg64 generator(3);
  EXPECT_EQ(generator.UpTo(0), 0U);
  for (const std::uint32_t last : {1U, 2U, 1000U, 0xfffffffeU}) {
    for (int i = 0; i < 1000; ++i)
      EXPECT_LE(generator.UpTo(last), last);
  }
}

}  // namespace
}  // namespace optcache::sampler
