#include "plan/bit_vector.h"

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

}  // namespace
}  // namespace optcache::plan
