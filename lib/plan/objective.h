#pragma once

// What a plan spares: bytes of the source, or requests to it.

#include <cstdint>

namespace optcache::plan {

enum class Objective : std::uint8_t {
  kBytes,
  kRequests,  // at equal bytes
};

}  // namespace optcache::plan
