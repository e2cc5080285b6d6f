#include "base/decimal.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(ParseDecimal, ReadsTheWholeText) {
  EXPECT_EQ(ParseDecimal("0"), 0);
  EXPECT_EQ(ParseDecimal("-3"), -3);
  EXPECT_EQ(ParseDecimal(".5"), 0.5);
  EXPECT_EQ(ParseDecimal("5."), 5);
  EXPECT_EQ(ParseDecimal("1e3"), 1000);
  EXPECT_EQ(ParseDecimal(std::string_view("12 GiB").substr(0, 2)), 12);
}

TEST(ParseDecimal, RefusesAllElse) {
  for (const char* const text :
       {"",         " ",   ".",     "-",      "+1",    " 1",    "1 ",  "1e",
        "e1",       "1,5", "1_000", "0x1p3",  "30%",   "--1",   "inf", "-inf",
        "infinity", "nan", "-NaN",  "nan(1)", "1e999", "-1e999"})
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
}

}  // namespace
}  // namespace optcache
