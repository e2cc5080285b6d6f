#include "dataset/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace optcache::dataset {
namespace {

constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t LoadBigEndian(const std::byte* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return __builtin_bswap32(word);
}

std::uint32_t Sigma(std::uint32_t x, int a, int b, int c) {
  return std::rotr(x, a) ^ std::rotr(x, b) ^ std::rotr(x, c);
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

void Sha256::Compress(const std::byte* block) {
  std::array<std::uint32_t, 64> w;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  for (size_t t = 0; t < 16; ++t)
    w[t] = LoadBigEndian(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3U);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10U);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t t = 0; t < 64; ++t) {
    const std::uint32_t choose = (e & f) ^ (~e & g);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    const std::uint32_t t1 = h + Sigma(e, 6, 11, 25) + choose + kRoundConstants[t] + w[t];
    const std::uint32_t t2 = Sigma(a, 2, 13, 22) + majority;
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i)
    state_[i] += sum[i];
}

void Sha256::Update(ByteSpan bytes) {
  const size_t held = length_ % pending_.size();
  length_ += bytes.size();
  if (held > 0) {
    const size_t n = std::min(pending_.size() - held, bytes.size());
    std::copy_n(bytes.begin(), n, pending_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(n);
    if (held + n < pending_.size()) return;
    Compress(pending_.data());
  }
  for (; bytes.size() >= pending_.size(); bytes = bytes.subspan(pending_.size())) {
    Compress(bytes.data());
  }
  std::ranges::copy(bytes, pending_.begin());
}

Digest Sha256::Finish() {
  // A one bit, zeros up to 56 modulo 64, and the length in bits.
  const std::uint64_t bits = __builtin_bswap64(length_ * 8);
  const std::array<std::byte, 64> padding = {std::byte{0x80}};
  const size_t held = length_ % 64;
  Update(ByteSpan(padding).first(held < 56 ? 56 - held : 120 - held));
  Update(std::as_bytes(std::span(&bits, 1)));
  Digest digest = {};
  for (size_t i = 0; i < state_.size(); ++i) {
    const std::uint32_t word = __builtin_bswap32(state_[i]);
    std::memcpy(digest.data() + 4 * i, &word, sizeof(word));
  }
  return digest;
}

Digest Sha256Of(ByteSpan bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

std::string ToHex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (const std::byte b : digest) {
    text += kDigits[std::to_integer<size_t>(b >> 4U)];
    text += kDigits[std::to_integer<size_t>(b & std::byte{0x0f})];
  }
  return text;
}

bool IsHexDigest(std::string_view text) {
  return text.size() == 2 * Digest{}.size() && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::uint64_t KeyOf(std::string_view name, std::string_view manifest_digest) {
  std::string text(name);
  text.append("\n").append(manifest_digest);
  const Digest digest = Sha256Of(AsBytes(text));
  std::uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof(key));
  return key;
}

}  // namespace optcache::dataset
