#pragma once

// What a plan predicts of one node: of the reads that its ranks make, and of the moves that begin
// there.

#include <cstdint>
#include <limits>
#include <span>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/stop_check.h"
#include "plan/pass_plan.h"
#include "plan/sizes.h"

namespace optcache::plan {

struct NodeShare {
  std::uint64_t reads = 0;
  std::uint64_t store_reads = 0;
  ByteCount read_bytes = 0;
  ByteCount store_bytes = 0;
  ByteCount moved_bytes = 0;  // sent on from here, whichever node read the sample

  NodeShare& operator+=(const NodeShare& other);
  friend bool operator==(const NodeShare&, const NodeShare&) = default;
};

// Of the plan's positions before `until`; `order` is that of its pass. Looks at this
// node's reads alone, tens of nanoseconds each, unless there are peer hits: then at all.
NodeShare ShareOf(NodeIndex node, const PassPlan& plan, std::span<const SampleId> order,
                  const Sizes& sizes, Position until = std::numeric_limits<Position>::max(),
                  const StopCheck& stop = {});

}  // namespace optcache::plan
