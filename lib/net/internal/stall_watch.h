#pragma once

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "net/connection.h"

namespace optcache::net {

// What a connection has done so far.
struct TrafficState {
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  bool mid_frame = false;  // part of a frame has come
  bool queued = false;     // something waits to be sent
};

// Finds connections that move too slowly, by looking at them in regular ticks. It counts ticks and
// not time: after a loop was busy for long, the peer has the next ticks to show what it sent.
// Not thread-safe: a value with one owner.
class StallWatch {
 public:
  explicit StallWatch(const ConnectionLimits& limits);

  Duration interval() const { return interval_; }

  // To be called every interval(): why to close the connection, if so.
  std::optional<Status> Tick(const TrafficState& state);

 private:
  static constexpr int kTicksADeadline = 4;

  struct Side {
    std::uint64_t bytes = 0;
    bool waited = false;
    int quiet_ticks = 0;
    bool Quiet(std::uint64_t now, bool waits, std::uint64_t least, int limit);
  };

  Duration interval_{};
  std::uint64_t stall_bytes_ = 0;  // a tick
  int stall_ticks_ = 0;
  int idle_ticks_ = 0;  // 0: never
  Side receiving_;
  Side sending_;
  Side idle_;
};

}  // namespace optcache::net
