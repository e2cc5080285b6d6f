#pragma once

// A base whose holders have too little room: a node leaves and has none any more, or gives some to
// one that has joined. What such a node has no room for moves to others that have some, and only
// what finds none anywhere is given up. See docs/formats/plan.md, "The base".

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/stop_check.h"
#include "plan/holders.h"
#include "plan/sizes.h"

namespace optcache::plan {

// A sample that goes to another node at the cut, without having been read.
struct Relocation {
  SampleId sample = 0;
  NodeIndex from = kNoNode;
  NodeIndex to = kNoNode;
  friend bool operator==(const Relocation&, const Relocation&) = default;
};

// The first read of a sample from the cut on, and at which node.
struct FirstRead {
  SampleId sample = 0;
  NodeIndex reader = kNoNode;
};

struct FittedBase {
  std::vector<Relocation> relocations;  // what is read first goes first
  std::vector<SampleId> evictions;      // given up
};

// Does no node hold more than its capacity?
bool Fits(const Sizes& sizes, std::span<const ByteCount> capacities, const Holders& holders,
          const StopCheck& stop = {});

// A node that holds too much keeps what is read first. What it has no room for goes, in the order
// in which it is read, to its reader's node if that has room, else to the node that has most, of
// equal ones to the first; that for which no node has room is given up. Large samples move, too:
// they arrive where room is kept for them. `holders` is what becomes of it. `first_reads` are in
// the order of the reads, one a sample; what is not among them is not read. Once `stop` says so,
// nothing of it means anything.
FittedBase FitBase(const Sizes& sizes, std::span<const ByteCount> capacities,
                   std::span<const FirstRead> first_reads, Holders& holders,
                   const StopCheck& stop = {});

}  // namespace optcache::plan
