#include "sampler/order_crc.h"

#include <vector>

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

// zlib's CRC-32, a bit at a time.
std::uint32_t PlainCrc(const std::vector<SampleId>& order) {
  std::uint32_t crc = 0xffffffffU;
  for (const SampleId id : order) {
    for (unsigned bit = 0; bit < 32; ++bit) {
      const bool carry = ((crc ^ (id >> bit)) & 1U) != 0;
      crc = (crc >> 1U) ^ (carry ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

// zlib.crc32(b"") and zlib.crc32(b"12345678").
TEST(OrderCrc, MatchesZlib) {
  EXPECT_EQ(OrderCrc({}), 0U);
  EXPECT_EQ(OrderCrc(std::vector<SampleId>{0x34333231, 0x38373635}), 0x9ae0daafU);
}

TEST(OrderCrc, MatchesTheBitwiseDefinition) {
  std::vector<SampleId> order;
  for (SampleId id = 1; order.size() < 1000; id = id * 2654435761U + 1) {
    order.push_back(id);
    ASSERT_EQ(OrderCrc(order), PlainCrc(order));
  }
}

TEST(OrderCrc, GoesOnFromASeed) {
  const std::vector<SampleId> order = {5, 0, 7, 1U << 31U, 9};
  const std::span<const SampleId> all(order);
  for (std::size_t cut = 0; cut <= order.size(); ++cut) {
    EXPECT_EQ(OrderCrc(all.subspan(cut), OrderCrc(all.first(cut))), OrderCrc(all));
  }
}

}  // namespace
}  // namespace optcache::sampler
