#pragma once

// What the pauses before retries are drawn by. Those who ask the same store or node have different
// names, so that they do not ask it again in step.

#include <cstdint>
#include <string_view>

#include "wire/stream_id.h"

namespace optcache::sidecar {

inline std::uint64_t RetrySeedOf(std::string_view name) {
  return wire::StreamIdOf(name, 0);
}

}  // namespace optcache::sidecar
