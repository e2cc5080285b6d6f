#pragma once

// What the present plan says of one read.

#include <optional>

#include "base/ids.h"
#include "wire/messages.h"

namespace optcache::node {

struct ReadKey {
  StreamId stream = 0;
  PassNumber pass = 0;
  Position position = 0;
  friend bool operator==(const ReadKey&, const ReadKey&) = default;
};

struct PlanDecision {
  bool here = false;           // planned to be in the reader's node's memory when read
  bool keep = false;           // some node keeps it after this read
  wire::MemberId keep_at = 0;  // which, if `keep`
  // The plan takes the pass to end before this read: it knows no more of it, and what is held is
  // held for other reads.
  bool beyond = false;
  wire::MemberId holder = 0;  // who has it when it is read; 0: the store
  bool moves = false;         // kept neither where it was nor at its reader
};

// Not thread-safe: read on the event loop.
class PlanLookup {
 public:
  virtual ~PlanLookup() = default;
  // Nothing while no plan covers the read (yet).
  virtual std::optional<PlanDecision> Find(const ReadKey& key) const = 0;
};

}  // namespace optcache::node
