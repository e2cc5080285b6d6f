#pragma once

// The numbers that name things. A sample is named by its place in the manifest, a node by its place
// in the member list of one plan version; both fit in small integers because plans hold millions.

#include <cstdint>

namespace optcache {

using SampleId = std::uint32_t;    // index into the manifest
using Rank = std::uint32_t;        // rank of a training process in its stream, 0 to world size - 1
using PassNumber = std::uint32_t;  // how many passes of the stream came before
using NodeIndex = std::uint16_t;   // index into the member list of a plan version
using StreamId = std::uint64_t;    // hash of a stream's name, see docs/ARCHITECTURE.md

// Place in a pass's global order: index in the rank's list * world size + rank.
using Position = std::uint64_t;

inline constexpr SampleId kNoSample = 0xffffffffU;
inline constexpr NodeIndex kNoNode = 0xffffU;

}  // namespace optcache
