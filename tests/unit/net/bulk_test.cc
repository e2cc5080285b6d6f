#include "net/internal/bulk.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

std::vector<std::byte> Key() {
  std::vector<std::byte> key;
  for (std::size_t i = 0; i < kBulkKeyBytes; ++i)
    key.push_back(static_cast<std::byte>(i));
  return key;
}

std::string Hex(const wire::Tag& tag) {
  std::string text;
  for (const std::byte byte : tag) {
    for (const int shift : {4, 0})
      text += "0123456789abcdef"[(std::to_integer<unsigned>(byte) >> shift) & 15U];
  }
  return text;
}

// By Python: hmac.new(bytes(range(32)), struct.pack("<Q", n) + head, hashlib.sha256).
TEST(Bulk, TagsAreHalfAnHmacOfNumberAndHead) {
  BulkSeals seals = MakeBulkSeals(Key());
  const ByteSpan head = AsBytes("OC sealed head");
  EXPECT_EQ(Hex(seals.of_dialer.Next(head)), "d6f0af4abf32dfe854a1a9efd028f954");
  EXPECT_EQ(Hex(seals.of_dialer.Next(head)), "d4201133fdbd615b24f6fd40398bae5c");
  EXPECT_EQ(Hex(seals.of_acceptor.Next(head)), "67e96fc77c8ea9bc5ec4c87863aeb5b8");
}

TEST(Bulk, OneEndAcceptsWhatTheOtherSealed) {
  BulkSeals here = MakeBulkSeals(Key());
  BulkSeals there = MakeBulkSeals(Key());
  const ByteSpan head = AsBytes("a frame");
  const wire::Tag tag = here.of_dialer.Next(head);
  EXPECT_TRUE(there.of_dialer.Accept(head, tag));
  EXPECT_FALSE(there.of_acceptor.Accept(head, tag));
}

}  // namespace
}  // namespace optcache::net
