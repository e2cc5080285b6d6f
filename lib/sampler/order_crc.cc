#include "sampler/order_crc.h"

#include <array>

namespace optcache::sampler {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320U;  // 0x04c11db7, bits reversed

// kTables[k][b]: the CRC of byte b followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 4>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1U) ^ ((0U - (crc & 1U)) & kPolynomial);
    tables[0][byte] = crc;
  }
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    for (std::size_t k = 1; k < tables.size(); ++k) {
      const std::uint32_t last = tables[k - 1][byte];
      tables[k][byte] = (last >> 8U) ^ tables[0][last & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

}  // namespace

std::uint32_t OrderCrc(std::span<const SampleId> order, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  for (const SampleId id : order) {
    // An id's four bytes at once, lowest first: so this is little-endian on any machine.
    crc ^= id;
    crc = kTables[3][crc & 0xffU] ^ kTables[2][(crc >> 8U) & 0xffU] ^
          kTables[1][(crc >> 16U) & 0xffU] ^ kTables[0][crc >> 24U];
  }
  return ~crc;
}

}  // namespace optcache::sampler
