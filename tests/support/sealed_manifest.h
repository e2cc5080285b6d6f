#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace optcache {

// A damaged manifest whose checksums are right all the same, as whoever writes one can make them.
inline std::string SealedManifest(std::string bytes) {
  const auto number = [&](size_t offset) {
    std::uint64_t value = 0;
    for (size_t i = 8; i-- > 0;)
      value = value << 8U | static_cast<unsigned char>(bytes[offset + i]);
    return value;
  };
  const auto store = [&](size_t offset, std::uint32_t value) {
    for (size_t i = 0; i < 4; ++i)
      bytes[offset + i] = static_cast<char>(value >> (8 * i));
  };
  const auto sections = static_cast<unsigned char>(bytes[28]);
  for (size_t i = 0; i < sections; ++i) {
    const size_t entry = 64 + i * 24;
    const std::uint64_t offset = number(entry + 8);
    const std::uint64_t length = number(entry + 16);
    if (offset > bytes.size() || length > bytes.size() - offset) continue;
    store(entry + 4, Crc32c(AsBytes(bytes).subspan(offset, length)));
  }
  store(60, Crc32c(AsBytes(bytes).subspan(64, sections * size_t{24}),
                   Crc32c(AsBytes(bytes).first(60))));
  return bytes;
}

}  // namespace optcache
