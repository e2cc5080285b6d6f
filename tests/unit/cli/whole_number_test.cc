#include "cli/terminal/whole_number.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(WholeNumber, TakesWhatFits) {
  EXPECT_EQ(WholeNumber<std::uint64_t>()("18446744073709551615"), "");
  EXPECT_EQ(WholeNumber<std::int64_t>()("-9223372036854775808"), "");
  EXPECT_EQ(WholeNumber<std::uint32_t>(1, 9)("1"), "");
  EXPECT_EQ(WholeNumber<std::uint32_t>(1, 9)("9"), "");
}

TEST(WholeNumber, SaysWhatItTakes) {
  for (const std::string text : {"0", "10", "-1", "1.5", "1e0", "0x1", " 1", "1 ", "+1", "", "one",
                                 "99999999999999999999999"}) {
    EXPECT_EQ(WholeNumber<std::uint32_t>(1, 9)(text),
              "'" + text + "': it takes a whole number from 1 to 9");
  }
  EXPECT_NE(WholeNumber<std::uint64_t>()("18446744073709551616"), "");
  EXPECT_NE(WholeNumber<std::uint64_t>()("-1"), "");
  EXPECT_NE(WholeNumber<std::int64_t>()("9223372036854775808"), "");
}

}  // namespace
}  // namespace optcache::cli
