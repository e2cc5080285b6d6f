#pragma once

// CRC-64/NVME, of the NVM Express specification: S3's own checksum of an object that came without
// one.

#include <cstdint>

#include "base/bytes.h"

namespace optcache {

// The CRC-64/NVME of `bytes`; give the CRC of what came before as `seed` to go on.
// Crc64Nvme("123456789") is 0xae8b14860a799888.
std::uint64_t Crc64Nvme(ByteSpan bytes, std::uint64_t seed = 0);

}  // namespace optcache
