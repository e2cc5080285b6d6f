#include "storage/internal/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace optcache::storage::internal {
namespace {

using Md5State = std::array<std::uint32_t, 4>;

constexpr size_t kMd5BlockBytes = 64;
constexpr size_t kMd5LengthBytes = 8;

// The 64 constants: 2^32 times the sine of 1, 2, …, without its sign.
std::array<std::uint32_t, 64> Sines() {
  std::array<std::uint32_t, 64> sines = {};
  for (unsigned i = 0; i < sines.size(); ++i)
    sines.at(i) = static_cast<std::uint32_t>(std::ldexp(std::abs(std::sin(i + 1.0)), 32));
  return sines;
}

std::uint32_t WordAt(std::string_view block, size_t at) {
  std::uint32_t word = 0;
  for (size_t i = 4; i > 0; --i)
    word = word << 8U | static_cast<unsigned char>(block[4 * at + i - 1]);
  return word;
}

void Compress(std::string_view block, Md5State& state) {
  static const std::array<std::uint32_t, 64> kSines = Sines();
  constexpr std::array<std::array<int, 4>, 4> kTurns = {
      {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};
  auto [a, b, c, d] = state;
  for (unsigned i = 0; i < 64; ++i) {
    std::uint32_t mixed = c ^ (b | ~d);
    unsigned word = 7 * i;
    if (i < 16) {
      mixed = (b & c) | (~b & d);
      word = i;
    } else if (i < 32) {
      mixed = (d & b) | (~d & c);
      word = 5 * i + 1;
    } else if (i < 48) {
      mixed = b ^ c ^ d;
      word = 3 * i + 5;
    }
    mixed += a + kSines.at(i) + WordAt(block, word % 16);
    a = d;
    d = c;
    c = b;
    b += std::rotl(mixed, kTurns.at(i / 16).at(i % 4));
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace

std::string Md5Of(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % kMd5BlockBytes != kMd5BlockBytes - kMd5LengthBytes)
    padded += '\0';
  for (size_t i = 0; i < kMd5LengthBytes; ++i)
    padded += static_cast<char>(std::uint64_t{bytes.size()} * 8 >> 8 * i);
  Md5State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (size_t at = 0; at < padded.size(); at += kMd5BlockBytes)
    Compress(std::string_view(padded).substr(at, kMd5BlockBytes), state);
  std::string sum;
  for (const std::uint32_t word : state) {
    for (unsigned shift = 0; shift < 32; shift += 8)
      sum += static_cast<char>(word >> shift);
  }
  return sum;
}

}  // namespace optcache::storage::internal
