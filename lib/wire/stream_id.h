#pragma once

// The number of a stream on the wire.

#include <cstdint>
#include <string_view>

#include "base/ids.h"

namespace optcache::wire {

// The same in every process that gives the same name and incarnation; never 0.
StreamId StreamIdOf(std::string_view stream_name, std::uint32_t incarnation);

}  // namespace optcache::wire
