#include "plan/bit_vector.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

TEST(BitVector, RemembersExactlyWhatWasSet) {
  BitVector bits(130);
  for (const std::size_t i : {0U, 63U, 64U, 129U})
    bits.Set(i);
  for (std::size_t i = 0; i < 130; ++i) {
    EXPECT_EQ(bits.Test(i), i == 0 || i == 63 || i == 64 || i == 129) << i;
  }
}

TEST(BitVector, PastesAtAnyPlace) {
  const std::vector<std::uint64_t> words = {0x8000000000000001U, 0x5U, 0};
  for (const std::size_t at : {0U, 1U, 63U, 64U, 100U}) {
    BitVector bits(at + 67);
    bits.Set(at + 1);
    bits.Paste(at, words);
    for (std::size_t i = 0; i < at + 67; ++i) {
      const bool expected = i == at || i == at + 1 || i == at + 63 || i == at + 64 || i == at + 66;
      EXPECT_EQ(bits.Test(i), expected) << i << " pasted at " << at;
    }
  }
}

}  // namespace
}  // namespace optcache::plan
