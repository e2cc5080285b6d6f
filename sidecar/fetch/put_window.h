#pragma once

// How much of what the store gives may wait to go to the node. A store that is faster than the
// connection would fill that to its limit, and it would be closed.

#include <cstddef>

#include "base/bytes.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

struct PutLimits {
  // Of staged reads that are under way and samples that wait to be sent, together. One is always
  // admitted.
  ByteCount staged_bytes = 256_MiB;
  std::size_t staged_samples = 16'384;
  // Of what waits to be sent, reads for trainers included: what comes beyond it is not put. Below
  // the limits of a connection (net::ConnectionLimits).
  ByteCount queued_bytes = 768_MiB;
  std::size_t queued_messages = 49'152;
};

// Not thread-safe: belongs to the event loop's thread. The node outlives it.
class PutWindow {
 public:
  PutWindow(const NodePort& node, PutLimits limits) : node_(node), limits_(limits) {}

  // May another staged read of this many bytes begin, that is to be put?
  bool Admits(ByteCount size) const;
  // It has begun, and has ended.
  void Begin(ByteCount size);
  void End(ByteCount size);

  // May a sample be put now?
  bool TakesPut() const;

 private:
  const NodePort& node_;
  PutLimits limits_;
  ByteCount reading_bytes_ = 0;
  std::size_t reading_ = 0;
};

}  // namespace optcache::sidecar
