#pragma once

// How much memory there is: of the machine, or of this process's control group (version 2),
// whichever is less.

#include <optional>
#include <string>

#include "base/bytes.h"

namespace optcache {

struct MemoryRoom {
  ByteCount bytes = 0;
  std::string limited_by;  // "the machine", "the container's memory limit"
};

// What this process may still take.
MemoryRoom AvailableMemory();
// What is there in all.
MemoryRoom TotalMemory();

// Of the process's control group; nothing if there is none.
std::optional<ByteCount> ControlGroupMemoryLimit();

}  // namespace optcache
