#pragma once

// CRC-32C (Castagnoli), the checksum that travels with every sample.

#include <cstdint>

#include "base/bytes.h"

namespace optcache {

// The CRC-32C of `bytes`; give the CRC of what came before as `seed` to go on.
// Crc32c("123456789") is 0xe3069283.
std::uint32_t Crc32c(ByteSpan bytes, std::uint32_t seed = 0);

}  // namespace optcache
