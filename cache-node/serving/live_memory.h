#pragma once

// Keeps what samples take in memory within the node's limit (docs/memory.md), also where readers do
// not take their answers: those stay in memory until they are sent, though the cache may have
// dropped the sample long ago, and no tier is charged for it.
//
// Every payload that arrives is a sample's memory; nothing arrives while all that is live, to
// whatever it is charged, is at the limit. And who holds up the node for long is closed.

#include <optional>

#include "base/bytes.h"
#include "base/clock.h"

namespace optcache::node {

// Not thread-safe: one owner.
class LiveMemory {
 public:
  // `memory`: what the node offers.
  explicit LiveMemory(ByteCount memory) : memory_(memory) {}

  // A sixteenth beside `memory` for transit and what waits to be sent; a small node's reserve is of
  // samples, not of bytes.
  ByteCount limit() const { return memory_ + memory_ / 16 + 8_MiB; }
  // Whether a payload may be taken when so much is live; counts those that may not.
  bool Admits(ByteCount live, ByteCount size);
  std::uint64_t refused() const { return refused_; }

  // Called several times a second. True: what no tier is charged for has been more than half of
  // what is beside `memory`, for five seconds; who has most to take should be closed. Then again
  // not before another five.
  bool IsHeldUp(ByteCount live, ByteCount charged, MonotonicTime now);

 private:
  ByteCount memory_;
  std::uint64_t refused_ = 0;
  std::optional<MonotonicTime> held_up_since_;
};

}  // namespace optcache::node
