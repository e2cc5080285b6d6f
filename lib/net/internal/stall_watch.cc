#include "net/internal/stall_watch.h"

#include <algorithm>
#include <utility>

namespace optcache::net {

StallWatch::StallWatch(const ConnectionLimits& limits) {
  const bool may_idle = limits.idle_deadline == Duration::zero();
  const Duration shortest =
      may_idle ? limits.stall_deadline : std::min(limits.stall_deadline, limits.idle_deadline);
  interval_ = std::max<Duration>(shortest / kTicksADeadline, std::chrono::milliseconds(1));
  stall_ticks_ = static_cast<int>(limits.stall_deadline / interval_);
  const auto ticks = static_cast<std::uint64_t>(limits.stall_deadline / interval_);
  stall_bytes_ = std::max<std::uint64_t>(limits.stall_bytes / ticks, 1);
  idle_ticks_ = may_idle ? 0 : static_cast<int>(limits.idle_deadline / interval_);
}

// Has the number grown by less than `least` in each of `limit` ticks in which it should have grown?
bool StallWatch::Side::Quiet(std::uint64_t now, bool waits, std::uint64_t least, int limit) {
  const bool quiet = std::exchange(waited, waits) && waits && now - bytes < least;
  quiet_ticks = quiet ? quiet_ticks + 1 : 0;
  bytes = now;
  return quiet_ticks >= limit;
}

std::optional<Status> StallWatch::Tick(const TrafficState& state) {
  if (receiving_.Quiet(state.bytes_in, state.mid_frame, stall_bytes_, stall_ticks_)) {
    return Status(Code::kDeadlineExceeded,
                  "the peer stopped in the middle of a frame, or sends too slowly");
  }
  if (sending_.Quiet(state.bytes_out, state.queued, stall_bytes_, stall_ticks_)) {
    return Status(Code::kDeadlineExceeded,
                  "the peer stopped reading what it was sent, or reads too slowly");
  }
  if (idle_ticks_ > 0 && idle_.Quiet(state.bytes_in, true, 1, idle_ticks_)) {
    return Status(Code::kDeadlineExceeded, "the peer was silent for too long");
  }
  return std::nullopt;
}

}  // namespace optcache::net
