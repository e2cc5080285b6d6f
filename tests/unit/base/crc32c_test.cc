#include "base/crc32c.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

// RFC 3720 B.4 and the usual check value.
TEST(Crc32c, MatchesPublishedVectors) {
  EXPECT_EQ(Crc32c(AsBytes("123456789")), 0xe3069283U);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\0'))), 0x8a9136aaU);
  EXPECT_EQ(Crc32c(AsBytes(std::string(32, '\xff'))), 0x62a8ab43U);
  EXPECT_EQ(Crc32c({}), 0U);
}

TEST(Crc32c, GoesOnFromASeed) {
  const std::string text = "the quick brown fox";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32c(AsBytes(text.substr(cut)), Crc32c(AsBytes(text.substr(0, cut)))),
              Crc32c(AsBytes(text)));
  }
}

}  // namespace
}  // namespace optcache
