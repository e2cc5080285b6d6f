#pragma once

// How long an epoch takes when the store is slow. The unit of time is one read by a job that
// computes: without waiting, read t is made at time t.
//
// A miss is asked for as soon as a staging slot is free, that is, when the miss `slots` before it
// has been consumed; its first byte comes `latency` later, and the store sends one after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace optcache::simulation {

struct StoreSpeed {
  double bandwidth = 1;  // bytes in a unit of time
  double latency = 0;    // in units of time
  std::uint32_t staging_slots = 64;
};

// Not thread-safe: a value with one owner.
class StallClock {
 public:
  explicit StallClock(const StoreSpeed& store)
      : store_(store), consumed_(std::max<std::uint32_t>(store.staging_slots, 1)) {}

  void Hit() { now_ += 1; }
  void Miss(std::uint32_t bytes) {
    double& slot = consumed_[next_slot_];
    if (++next_slot_ == consumed_.size()) next_slot_ = 0;
    const double first_byte = std::max(slot + store_.latency, sent_);
    sent_ = first_byte + bytes / store_.bandwidth;
    now_ = std::max(now_ + 1, sent_);
    slot = now_;
  }
  double now() const { return now_; }

 private:
  StoreSpeed store_;
  std::vector<double> consumed_;  // when each slot became free
  std::size_t next_slot_ = 0;
  double sent_ = 0;  // when the store was done with the miss before
  double now_ = 0;
};

}  // namespace optcache::simulation
