#include "config/yaml_value.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace optcache::config {
namespace {

template <typename T>
bool Is(const char* word, const T& expected) {
  const YamlValue value = ReadYamlWord(word);
  const T* const held = value.As<T>();
  return held != nullptr && *held == expected;
}

TEST(YamlWord, IsReadAsKubectlReadsIt) {
  for (const char* const word : {"", "~", "null", "NULL"})
    EXPECT_NE(ReadYamlWord(word).As<std::monostate>(), nullptr) << word;
  for (const char* const word : {"true", "True", "y", "Y", "yes", "on"})
    EXPECT_TRUE(Is(word, true)) << word;
  for (const char* const word : {"false", "n", "N", "NO", "off"})
    EXPECT_TRUE(Is(word, false)) << word;
  EXPECT_TRUE(Is("0", std::int64_t{0}));
  EXPECT_TRUE(Is("-17", std::int64_t{-17}));
  EXPECT_TRUE(Is("+17", std::int64_t{17}));
  EXPECT_TRUE(Is("0644", std::int64_t{420}));
  EXPECT_TRUE(Is("0o644", std::int64_t{420}));
  EXPECT_TRUE(Is("0x1F", std::int64_t{31}));
  EXPECT_TRUE(Is("0b101", std::int64_t{5}));
  EXPECT_TRUE(Is("0X1F", std::int64_t{31}));
  EXPECT_TRUE(Is("-0O17", std::int64_t{-15}));
  EXPECT_TRUE(Is("0B101", std::int64_t{5}));
  EXPECT_TRUE(Is("089", 89.0));
  EXPECT_TRUE(Is("-9223372036854775808", std::numeric_limits<std::int64_t>::min()));
  EXPECT_TRUE(Is("9223372036854775808", 0x1p63));
  EXPECT_TRUE(Is("0.5", 0.5));
  EXPECT_TRUE(Is("1e3", 1000.0));
  EXPECT_TRUE(Is("-.5", -0.5));
}

TEST(YamlWord, MayHaveUnderscoresInANumber) {
  for (const char* const word : {"1_000", "1__000_", "+_1000", "0x3_E8", "0_1750"})
    EXPECT_TRUE(Is(word, std::int64_t{1000})) << word;
  EXPECT_TRUE(Is("-1_0.2_5", -10.25));
  EXPECT_TRUE(Is("1e_3", 1000.0));
  for (const char* const word : {"_", "_1", "+_", "._5", "1_000m", "a_1", "yes_"})
    EXPECT_TRUE(Is(word, std::string(word))) << word;
}

TEST(YamlWord, IsTextOtherwise) {
  for (const char* const word :
       {"500m", "8Gi", "1.2.3", "-", "+", "--5", "+-5", "0x", "1e", ".", "nan", ".inf", "10.0.0.1",
        "12:30", "tRUE", "yES", "True!", "e", "- 5"}) {
    EXPECT_TRUE(Is(word, std::string(word))) << word;
  }
  EXPECT_TRUE(Is("1e999", std::string("1e999")));
}

}  // namespace
}  // namespace optcache::config
