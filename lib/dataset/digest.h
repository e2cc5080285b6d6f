#pragma once

// SHA-256 (FIPS 180-4), which names manifests and checks samples.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace optcache::dataset {

using Digest = std::array<std::byte, 32>;

// The digest of bytes that arrive in pieces. Not thread-safe: a value.
class Sha256 {
 public:
  void Update(ByteSpan bytes);
  // The digest of everything so far; nothing may follow.
  Digest Finish();

 private:
  void Compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> pending_ = {};
  std::uint64_t length_ = 0;  // bytes so far; the last length_ % 64 of them are in pending_
};

Digest Sha256Of(ByteSpan bytes);

// A digest as text: 64 lower-case hexadecimal digits.
std::string ToHex(const Digest& digest);
bool IsHexDigest(std::string_view text);

// What the wire calls a dataset: the first eight bytes, little endian, of the SHA-256 of
// "NAME\nDIGEST", its name ("namespace/name") and its manifest's digest in hexadecimal. Datasets of
// other names have other keys, also with the same content.
std::uint64_t KeyOf(std::string_view name, std::string_view manifest_digest);

}  // namespace optcache::dataset
