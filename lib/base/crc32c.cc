#include "base/crc32c.h"

#include <algorithm>
#include <limits>

#include <isa-l/crc.h>

namespace optcache {

std::uint32_t Crc32c(ByteSpan bytes, std::uint32_t seed) {
  // ISA-L takes an int length, neither inverts before nor after, and never writes to the buffer.
  constexpr size_t kStep = std::numeric_limits<int>::max() / 2;
  std::uint32_t crc = ~seed;
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), kStep);
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
    crc = crc32_iscsi(data, static_cast<int>(n), crc);
    bytes = bytes.subspan(n);
  }
  return ~crc;
}

}  // namespace optcache
