#pragma once

// The checksum by which a training process and the cache find out that they speak of the same
// order.

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace optcache::sampler {

// CRC-32 (the polynomial of zlib, PNG and Ethernet) over the ids as little-endian uint32: what
// Python computes as zlib.crc32(numpy.asarray(order, dtype="<u4")). Not CRC-32C, which Python
// lacks. Give the CRC of what came before as `seed` to go on. OrderCrc of {0x34333231, 0x38373635},
// the bytes "12345678", is 0x9ae0daaf.
std::uint32_t OrderCrc(std::span<const SampleId> order, std::uint32_t seed = 0);

}  // namespace optcache::sampler
