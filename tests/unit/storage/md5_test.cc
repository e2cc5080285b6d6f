#include "storage/internal/md5.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace optcache::storage::internal {
namespace {

std::string HexMd5Of(const std::string& text) {
  std::string hex;
  for (const char c : Md5Of(text))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// RFC 1321, A.5.
TEST(Md5, SumsAsTheRfcDoes) {
  EXPECT_EQ(HexMd5Of(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(HexMd5Of("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(HexMd5Of("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(HexMd5Of("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(HexMd5Of("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(HexMd5Of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
            "d174ab98d277d9f5a5611c2c9f419d9f");
  EXPECT_EQ(HexMd5Of("1234567890123456789012345678901234567890123456789012345678901234567890123456"
                     "7890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

// Around the end of a block, where the length does not fit any more.
TEST(Md5, SumsTextsThatEndABlock) {
  EXPECT_EQ(HexMd5Of(std::string(55, 'x')), "04364420e25c512fd958a70738aa8f72");
  EXPECT_EQ(HexMd5Of(std::string(56, 'x')), "668a72d5ba17f08e62dabcafad6db14b");
  EXPECT_EQ(HexMd5Of(std::string(64, 'x')), "c1bb4f81d892b2d57947682aeb252456");
}

}  // namespace
}  // namespace optcache::storage::internal
