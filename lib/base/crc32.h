#pragma once

// CRC-32 (ISO 3309), as gzip and S3 have it.

#include <cstdint>

#include "base/bytes.h"

namespace optcache {

// The CRC-32 of `bytes`; give the CRC of what came before as `seed` to go on.
// Crc32("123456789") is 0xcbf43926.
std::uint32_t Crc32(ByteSpan bytes, std::uint32_t seed = 0);

}  // namespace optcache
