#include "base/base64.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(Base64, WritesTheVectorsOfRfc4648) {
  EXPECT_EQ(EncodeBase64(""), "");
  EXPECT_EQ(EncodeBase64("f"), "Zg==");
  EXPECT_EQ(EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(EncodeBase64("foob"), "Zm9vYg==");
  EXPECT_EQ(EncodeBase64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(EncodeBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsWhatItWrites) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes);
    bytes.push_back(static_cast<char>(i * 7));
  }
}

TEST(Base64, RefusesWhatItWouldNotWrite) {
  for (const char* text : {"Zg=", "Zg", "Z===", "Zh==", "Zm9=", "Zm 9", "=Zm9", "Zg==Zg=="}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace optcache
