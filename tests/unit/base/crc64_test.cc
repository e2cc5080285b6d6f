#include "base/crc64.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache {
namespace {

// Bit after bit, as the specification says it.
std::uint64_t SlowCrc(std::string_view bytes) {
  std::uint64_t crc = ~std::uint64_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? 0x9a6c9329ac4bc9b5 : 0);
  }
  return ~crc;
}

// The usual check value, and those of the NVM Command Set Specification.
TEST(Crc64Nvme, MatchesPublishedVectors) {
  EXPECT_EQ(Crc64Nvme(AsBytes("123456789")), 0xae8b14860a799888U);
  EXPECT_EQ(Crc64Nvme({}), 0U);
  std::string rising(4096, '\0');
  for (size_t i = 0; i < rising.size(); ++i)
    rising[i] = static_cast<char>(i);
  EXPECT_EQ(Crc64Nvme(AsBytes(std::string(4096, '\0'))), 0x6482d367eb22b64eU);
  EXPECT_EQ(Crc64Nvme(AsBytes(std::string(4096, '\xff'))), 0xc0ddba7302eca3acU);
  EXPECT_EQ(Crc64Nvme(AsBytes(rising)), 0x3e729f5f6750449cU);
  EXPECT_EQ(Crc64Nvme(AsBytes(std::string(rising.rbegin(), rising.rend()))), 0x9a2df64b8e9e517eU);
}

// Of all lengths around a step of the tables, at all places within a word, cut anywhere.
TEST(Crc64Nvme, IsThatOfTheSlowOne) {
  const std::uint64_t seed = TestSeed(64);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  std::string bytes(80, '\0');
  for (char& byte : bytes)
    byte = static_cast<char>(random.Next());
  for (size_t begin = 0; begin < 8; ++begin) {
    for (size_t length = 0; length <= bytes.size() - 8; ++length) {
      const std::string_view all = std::string_view(bytes).substr(begin, length);
      const std::string_view front = all.substr(0, random.Below(length + 1));
      const std::uint64_t so_far = Crc64Nvme(AsBytes(front));
      EXPECT_EQ(Crc64Nvme(AsBytes(all)), SlowCrc(all)) << begin << " " << length;
      EXPECT_EQ(Crc64Nvme(AsBytes(all.substr(front.size())), so_far), SlowCrc(all))
          << begin << " " << length << " " << front.size();
    }
  }
}

}  // namespace
}  // namespace optcache
