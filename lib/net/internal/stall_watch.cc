#include "net/internal/stall_watch.h"

#include <algorithm>

namespace optcache::net {

StallWatch::StallWatch(const ConnectionLimits& limits) {
  const bool may_idle = limits.idle_deadline == Duration::zero();
  const Duration shortest =
      may_idle ? limits.stall_deadline : std::min(limits.stall_deadline, limits.idle_deadline);
  interval_ = std::max<Duration>(shortest / kTicksADeadline, std::chrono::milliseconds(1));
  stall_ticks_ = static_cast<int>(limits.stall_deadline / interval_);
  idle_ticks_ = may_idle ? 0 : static_cast<int>(limits.idle_deadline / interval_);
}

// Has the number stood still for `limit` ticks in which it should have moved?
bool StallWatch::Side::Quiet(std::uint64_t now, bool waiting, int limit) {
  quiet_ticks = waiting && now == bytes ? quiet_ticks + 1 : 0;
  bytes = now;
  return quiet_ticks >= limit;
}

std::optional<Status> StallWatch::Tick(const TrafficState& state) {
  if (receiving_.Quiet(state.bytes_in, state.mid_frame, stall_ticks_)) {
    return Status(Code::kDeadlineExceeded, "the peer stopped in the middle of a frame");
  }
  if (sending_.Quiet(state.bytes_out, state.queued, stall_ticks_)) {
    return Status(Code::kDeadlineExceeded, "the peer stopped reading what it was sent");
  }
  if (idle_ticks_ > 0 && idle_.Quiet(state.bytes_in, true, idle_ticks_)) {
    return Status(Code::kDeadlineExceeded, "the peer was silent for too long");
  }
  return std::nullopt;
}

}  // namespace optcache::net
