#pragma once

// Lets TLS handshakes begin. Each takes the loop's thread a part of a millisecond before the
// client is known. So they begin at a pace, in all and of each source, and sources take turns: a
// source that does handshakes as fast as it can takes a bounded share of the processor, and no turn
// of another source. A handshake that comes faster waits.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/event_loop.h"
#include "net/tls.h"

namespace optcache::net {

// Used on the loop's thread only. The owner bounds how many wait.
class HandshakeGate {
 public:
  using Begin = std::move_only_function<void()>;

  HandshakeGate(EventLoop& loop, const HandshakePace& pace)
      : loop_(loop), pace_(pace), all_(pace.per_second, pace.burst) {}
  HandshakeGate(const HandshakeGate&) = delete;
  HandshakeGate& operator=(const HandshakeGate&) = delete;

  // Calls `begin` now or later. Of one source, lower ids go first.
  void Enter(const std::string& source, std::uint64_t id, Begin begin);
  // It has gone. Nothing happens for one that has begun.
  void Leave(const std::string& source, std::uint64_t id);

  // How many had to wait so far.
  std::uint64_t delayed() const { return delayed_; }

 private:
  // Lets a burst through, and then one each interval.
  class Pace {
   public:
    Pace(double per_second, int burst);
    MonotonicTime next() const { return full_ - interval_ * (burst_ - 1); }
    bool is_rested(MonotonicTime now) const { return now >= full_; }
    void Take(MonotonicTime now);

   private:
    Duration interval_;
    int burst_;
    MonotonicTime full_{};  // from then on a whole burst may come
  };
  struct Source {
    Pace pace;
    std::map<std::uint64_t, Begin> waiting;
  };
  void Run();
  std::optional<MonotonicTime> TakeTurns(MonotonicTime now, std::vector<Begin>& ready);

  EventLoop& loop_;
  HandshakePace pace_;
  Pace all_;
  std::map<std::string, Source> sources_;  // that wait, or have begun lately
  std::string last_;                       // whose turn it was
  std::uint64_t delayed_ = 0;
  Timer timer_;
};

}  // namespace optcache::net
