#pragma once

// The plan for everything that is not one shuffling stream: several streams, passes cut short,
// orders with repeats. Their reads are merged in virtual time; each sample that is kept is kept at
// the node of its next read; on each node MIN with bypass chooses among the intervals [this read,
// next read).
//
// Where reads and room are spread unevenly over the nodes, a part of some nodes' capacity is spare
// room (spare_room.h). MIN chooses again, for the spare room of all nodes together, among the
// intervals that found no room at their next reader. What is kept there is read from there.
//
// The merged order runs on past the window, by one pass or two, so that a sample is kept (and
// moved) only if it will still be there when it is used. What lies beyond is unknown and not kept
// for.
//
//   |<------- window ------->|<------ lookahead ------>|
//   [x....................x]                              kept
//          [y............................y]               kept at the window's end, and used later
//                [z....................................... not kept

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/stop_check.h"
#include "plan/bit_vector.h"
#include "plan/holders.h"
#include "plan/merged_order.h"
#include "plan/pass_plan.h"
#include "plan/sizes.h"

namespace optcache::plan {

struct WindowInput {
  const Sizes& sizes;
  std::span<const ByteCount> capacities;
  ByteCount max_moved_bytes_per_sample = 0;
  const MergedOrder& merged;
  std::size_t window = 0;                // how many of the merged reads to decide
  std::span<const StreamId> stream_ids;  // of merged.streams()
  // This many reads, or fewer, are told to the nodes at once, then node after node chooses, so that
  // its memory is near. Changes nothing but time.
  std::size_t block = std::size_t{1} << 21U;
  StopCheck stop;
};

struct WindowOutput {
  std::vector<SampleId> evictions;  // held at the start, not worth their room; in any order
  std::vector<std::shared_ptr<const PassPlan>> plans;  // one a stream and pass, in that order
};

// Plans the window, some 60 ns a merged read, in 4 bytes a merged read and 8 a sample beside the
// order and the plans, where there is spare room twice that; `holders` becomes the state at its
// end. What they hold must fit in the capacities. Once `stop` says so, output and holders mean
// nothing.
WindowOutput PlanWindowByMin(const WindowInput& input, Holders& holders);

}  // namespace optcache::plan
