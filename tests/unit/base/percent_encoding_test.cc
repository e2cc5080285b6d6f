#include "base/percent_encoding.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(PercentEncoding, LeavesUnreservedCharactersAlone) {
  EXPECT_EQ(PercentEncode("azAZ09-._~"), "azAZ09-._~");
  EXPECT_EQ(PercentEncodePath("azAZ09-._~/"), "azAZ09-._~/");
}

TEST(PercentEncoding, EncodesAllElseByteByByte) {
  EXPECT_EQ(PercentEncode("a b+c/%=&é"), "a%20b%2Bc%2F%25%3D%26%C3%A9");
  EXPECT_EQ(PercentEncodePath("a b+c/%=&é"), "a%20b%2Bc/%25%3D%26%C3%A9");
}

TEST(PercentEncoding, DecodesWhatItEncodes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  EXPECT_EQ(PercentDecode(PercentEncode(all)).value(), all);
  EXPECT_EQ(PercentDecode(PercentEncodePath(all)).value(), all);
  EXPECT_EQ(PercentDecode("%c3%A9+").value(), "é+");
}

TEST(PercentEncoding, RefusesAPercentSignThatEncodesNothing) {
  for (const std::string text : {"%", "a%", "%4", "%4g", "%g4", "%%41", "a%-1"})
    EXPECT_EQ(PercentDecode(text).error().code(), Code::kInvalidArgument) << text;
}

TEST(PercentEncoding, AQueryIsNamesAndValues) {
  EXPECT_EQ(QueryString({}), "");
  EXPECT_EQ(QueryString({{"labelSelector", "a=b,!c"}, {"limit", "5"}}),
            "labelSelector=a%3Db%2C%21c&limit=5");
}

}  // namespace
}  // namespace optcache
