#include "sampler/mt19937.h"

#include <random>

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

TEST(Mt19937, DrawsTheWordsOfTheStandardGenerator) {
  for (const std::uint32_t seed : {0U, 1U, 5489U, 0xffffffffU}) {
    Mt19937 generator(seed);
    std::mt19937 standard(seed);
    for (int i = 0; i < 2000; ++i)
      ASSERT_EQ(generator.Next(), standard()) << seed << " " << i;
  }
}

TEST(Mt19937, TakesTheLow32BitsOfTheSeed) {
  EXPECT_EQ(Mt19937(5).Next(), Mt19937((1ULL << 32U) + 5).Next());
  EXPECT_EQ(Mt19937(0xffffffffU).Next(), Mt19937(static_cast<std::uint64_t>(-1)).Next());
  EXPECT_NE(Mt19937(5).Next(), Mt19937(6).Next());
}

TEST(Mt19937, MakesSixtyFourBitsHighHalfFirst) {
  Mt19937 words(7);
  Mt19937 pairs(7);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t high = words.Next();
    const std::uint64_t low = words.Next();
    ASSERT_EQ(pairs.Next64(), (high << 32U) + low);
  }
}

TEST(Mt19937, DiscardsAsManyWordsAsItWouldHaveDrawn) {
  for (const std::uint64_t before : {0U, 1U, 623U, 624U, 625U}) {
    for (const std::uint64_t count :
         {0U, 1U, 2U, 622U, 623U, 624U, 625U, 1247U, 1248U, 1249U, 100'000U}) {
      Mt19937 skipping(11);
      Mt19937 drawing(11);
      for (std::uint64_t i = 0; i < before; ++i)
        ASSERT_EQ(skipping.Next(), drawing.Next());
      skipping.Discard(count);
      for (std::uint64_t i = 0; i < count; ++i)
        drawing.Next();
      for (int i = 0; i < 700; ++i)
        ASSERT_EQ(skipping.Next(), drawing.Next()) << before << count;
    }
  }
}

}  // namespace
}  // namespace optcache::sampler
