#pragma once

// When a sidecar that is an ordinary container ends by itself, so that its Job completes: before
// Kubernetes 1.29 nobody ends it.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "net/event_loop.h"

namespace optcache::sidecar {

// What there is to see at one moment.
struct PodSight {
  bool exit_file = false;
  std::size_t clients = 0;  // connections of training processes
  // Processes of other containers; nothing where the pod's containers do not share theirs.
  std::optional<bool> others_alive;
};

// Decides from what was seen, look by look. Pure. Not thread-safe: a value with one owner.
class ExitRule {
 public:
  // Clients that have gone may come again, for example between two epochs. Where other processes
  // cannot be seen, so long nobody came.
  explicit ExitRule(Duration linger) : linger_(linger) {}
  bool IsOver(const PodSight& sight, MonotonicTime now);

 private:
  Duration linger_;
  bool had_clients_ = false;
  std::optional<MonotonicTime> alone_since_;
};

// Are there processes in `proc` (usually "/proc") besides this one, its children and the pod's
// pause? Nothing if this one is the first of its own.
std::optional<bool> OthersAlive(const std::string& proc, int self);

// Looks once a second. Used on the loop's thread only.
class ExitWatch {
 public:
  struct Options {
    std::string file;
    std::string proc = "/proc";
    Duration linger = std::chrono::minutes(2);
  };
  // Calls `on_over` once.
  ExitWatch(net::EventLoop& loop, const Clock& clock, Options options,
            std::function<std::size_t()> clients, std::function<void()> on_over);

 private:
  void Look();

  net::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  std::function<std::size_t()> clients_;
  std::function<void()> on_over_;
  ExitRule rule_;
  net::Timer timer_;
};

}  // namespace optcache::sidecar
