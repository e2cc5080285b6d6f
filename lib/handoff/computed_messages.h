#pragma once

// What training processes and the sidecar say to each other about computed samples
// (docs/formats/handoff.md, "Computed samples"). From version 2 on.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace optcache::handoff {

using LeaseId = std::uint64_t;  // leave to compute a value; 0: it will not be taken

// --- From the client ----------------------------------------------------------------------------

struct OpenComputedRequest {
  std::string name;           // processes with the same one share values
  std::string what;           // computes them; must be the same for all who share
  std::uint64_t samples = 0;  // how many there may be, the same for all
  ByteCount max_bytes = 0;    // of the values together
  friend bool operator==(const OpenComputedRequest&, const OpenComputedRequest&) = default;
};

// A part of the value that was computed. Parts come in order; the value is there with its last.
// Length 0: there is no value.
struct ComputedPut {
  LeaseId lease = 0;
  std::uint64_t length = 0;  // of the whole value
  std::uint64_t offset = 0;  // of this part
  std::vector<std::byte> bytes;
  friend bool operator==(const ComputedPut&, const ComputedPut&) = default;
};

struct ComputedCountsRequest {
  std::uint32_t dataset = 0;
  friend bool operator==(const ComputedCountsRequest&, const ComputedCountsRequest&) = default;
};

// --- From the server ----------------------------------------------------------------------------

struct OpenComputedReply {
  std::uint32_t dataset = 0;  // a handle, for Attach and Get
  bool first = false;         // nobody had it open
  ByteCount capacity = 0;     // of max_bytes, what there is room for
  ByteCount memory_size = 0;
  int memory_fd = -1;  // in which the values lie; lent for the call
};

// A value, which stays as it is until this connection's next Get of a computed sample.
struct ValueReply {
  ByteCount offset = 0;
  ByteCount length = 0;
};

// There is none: compute it.
struct ComputeReply {
  LeaseId lease = 0;
  ByteCount room = 0;  // a longer value will not be taken
};

// All of one dataset, since it was opened first.
struct ComputedCounts {
  ByteCount capacity = 0;
  ByteCount bytes = 0;
  std::uint64_t values = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
};

}  // namespace optcache::handoff
