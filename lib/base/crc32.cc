#include "base/crc32.h"

#include <isa-l/crc.h>

namespace optcache {

std::uint32_t Crc32(ByteSpan bytes, std::uint32_t seed) {
  return crc32_gzip_refl(seed, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

}  // namespace optcache
