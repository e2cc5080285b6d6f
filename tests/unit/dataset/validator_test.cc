#include "dataset/validator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

TEST(Validator, KnowsETags) {
  for (const std::string_view etag :
       {"\"\""sv, "\"x\""sv, "W/\"x\""sv, "\"a-3\""sv, "\"\xc3\xa4\""sv}) {
    EXPECT_TRUE(IsETag(etag)) << etag;
    EXPECT_TRUE(CheckETag(etag).ok()) << etag;
  }
  for (const std::string_view none :
       {"x"sv, "\""sv, "\"x"sv, "x\""sv, "w/\"x\""sv, "W/"sv, "\"a b\""sv, "\"a\"b\""sv,
        "\"x\"\r\nX-Injected: yes"sv, "\"x\r\nX-Injected:yes\""sv, "\"a\nb\""sv, "\"a\0b\""sv,
        "\"a\x7f\""sv, "\"a\tb\""sv}) {
    EXPECT_FALSE(IsETag(none)) << none;
    EXPECT_EQ(CheckETag(none).code(), Code::kInvalidArgument) << none;
  }
}

TEST(Validator, AnUnknownETagIsFineAndALongOneIsNot) {
  EXPECT_TRUE(CheckETag("").ok());
  EXPECT_TRUE(CheckETag('"' + std::string(kETagBytesMax - 2, 'e') + '"').ok());
  EXPECT_THAT(CheckETag('"' + std::string(kETagBytesMax - 1, 'e') + '"').message(),
              HasSubstr("has 257 bytes; the limit is 256"));
}

}  // namespace
}  // namespace optcache::dataset
