// By tables, since ISA-L has this polynomial only from 2.31 on. A step takes kSliceBytes bytes,
// each with a table of its own: the one `after` bytes before the step's end is looked up in
// kTables[after], which has what a byte leaves in the CRC when as many zero bytes follow it.

#include "base/crc64.h"

#include <array>
#include <bit>
#include <cstring>

namespace optcache {
namespace {

constexpr std::uint64_t kPolynomial = 0x9a6c9329ac4bc9b5;  // 0xad93d23594c93659, lowest bit first
constexpr size_t kWordBytes = sizeof(std::uint64_t);
constexpr size_t kSliceBytes = 2 * kWordBytes;

using Tables = std::array<std::array<std::uint64_t, 256>, kSliceBytes>;

constexpr Tables MakeTables() {
  Tables tables = {};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1U ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t after = 1; after < kSliceBytes; ++after) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[after - 1][byte];
      tables[after][byte] = before >> 8U ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

// Of eight bytes, the last of which stands `after` bytes before the step's end.
template <size_t after>
std::uint64_t OfWord(std::uint64_t word) {
  return kTables[after + 7][word & 0xffU] ^ kTables[after + 6][word >> 8U & 0xffU] ^
         kTables[after + 5][word >> 16U & 0xffU] ^ kTables[after + 4][word >> 24U & 0xffU] ^
         kTables[after + 3][word >> 32U & 0xffU] ^ kTables[after + 2][word >> 40U & 0xffU] ^
         kTables[after + 1][word >> 48U & 0xffU] ^ kTables[after][word >> 56U];
}

std::uint64_t WordAt(const std::byte* at) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

}  // namespace

std::uint64_t Crc64Nvme(ByteSpan bytes, std::uint64_t seed) {
  std::uint64_t crc = ~seed;
  for (; bytes.size() >= kSliceBytes; bytes = bytes.subspan(kSliceBytes)) {
    const std::uint64_t first = WordAt(bytes.data()) ^ crc;
    crc = OfWord<kWordBytes>(first) ^ OfWord<0>(WordAt(bytes.data() + kWordBytes));
  }
  for (const std::byte byte : bytes)
    crc = crc >> 8U ^ kTables[0][(crc ^ std::to_integer<std::uint64_t>(byte)) & 0xffU];
  return ~crc;
}

}  // namespace optcache
