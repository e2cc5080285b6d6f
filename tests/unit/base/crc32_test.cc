#include "base/crc32.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

// The usual check value, and the usual sentence.
TEST(Crc32, MatchesPublishedVectors) {
  EXPECT_EQ(Crc32(AsBytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(Crc32(AsBytes("The quick brown fox jumps over the lazy dog")), 0x414fa339U);
  EXPECT_EQ(Crc32({}), 0U);
}

TEST(Crc32, GoesOnFromASeed) {
  const std::string text = "the quick brown fox";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32(AsBytes(text.substr(cut)), Crc32(AsBytes(text.substr(0, cut)))),
              Crc32(AsBytes(text)));
  }
}

}  // namespace
}  // namespace optcache
