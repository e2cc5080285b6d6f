#include "base/whole_number.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(WholeNumber, IsAllOfTheText) {
  EXPECT_EQ(ParseWholeNumber<std::uint64_t>("0"), 0U);
  EXPECT_EQ(ParseWholeNumber<std::uint64_t>("007"), 7U);
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1.5", "1e0", "0x1", "one", "1,2"})
    EXPECT_FALSE(ParseWholeNumber<std::uint64_t>(text)) << text;
}

TEST(WholeNumber, FitsItsType) {
  EXPECT_EQ(ParseWholeNumber<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(ParseWholeNumber<std::uint64_t>("18446744073709551616"));
  EXPECT_EQ(ParseWholeNumber<std::uint16_t>("65535"), UINT16_MAX);
  EXPECT_FALSE(ParseWholeNumber<std::uint16_t>("65536"));
  EXPECT_EQ(ParseWholeNumber<std::int64_t>("-9223372036854775808"), INT64_MIN);
  EXPECT_FALSE(ParseWholeNumber<std::int64_t>("-9223372036854775809"));
}

TEST(WholeNumber, IsAtMostItsLimit) {
  EXPECT_EQ(ParseWholeNumber<std::uint32_t>("9", 9), 9U);
  EXPECT_FALSE(ParseWholeNumber<std::uint32_t>("10", 9));
}

}  // namespace
}  // namespace optcache
