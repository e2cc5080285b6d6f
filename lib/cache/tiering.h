#pragma once

// Which samples lie in memory and which on disk: those that are used soonest lie in memory. Both
// budgets are hard. Pure.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace optcache::cache {

// When nothing is known of a sample's next use: later than all that is known.
inline constexpr double kUseUnknown = 1e300;

struct SpillCandidate {
  SampleId id = 0;
  ByteCount size = 0;
  double next_use = kUseUnknown;  // how far ahead, in any unit that is the same for all
  std::uint64_t last_use = 0;     // rises with each use
};

// How much is written at a time: a sixteenth of the memory, 256 KiB to 32 MiB, and never more than
// a quarter. Large enough for a disk, small enough that waiting for a segment does not hold memory
// for long.
ByteCount SegmentBytes(ByteCount memory);

// How much is chosen at a time, since choosing looks at all that lies in memory: a segment, or a
// thirty-second part of the memory where that is more.
ByteCount SpillBatchBytes(ByteCount memory);

// How much is to go to the disk now: nothing while what lies in memory leaves room for three
// segments, and for `awaited` bytes that are about to come, else a segment.
ByteCount SpillBytes(ByteCount in_memory, ByteCount memory, ByteCount awaited);

struct SpillLimits {
  ByteCount bytes = 0;    // enough once there are this many
  ByteCount room = 0;     // never more than this
  std::size_t count = 0;  // nor more samples than this
};

// Those whose next use is farthest away, in the order in which they are written: the soonest next
// use first, so that what goes at one time lies side by side. Where nothing is known of the next
// use, what is unused longest goes first, and lies first.
std::vector<SampleId> ChooseSpill(std::vector<SpillCandidate> candidates,
                                  const SpillLimits& limits);

// What a disk of this many bytes is counted for in plans: a tenth is for tables, padding and blocks
// that are not empty yet.
ByteCount DiskPayload(ByteCount disk);

}  // namespace optcache::cache
