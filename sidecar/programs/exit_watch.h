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
  // Processes of other containers; nothing where they cannot be seen.
  std::optional<bool> others_alive;
};

// Decides from what was seen, look by look. Pure. Not thread-safe: a value with one owner.
class ExitRule {
 public:
  // It is over when nobody has been there for `linger`: clients may come again between two epochs,
  // a container that has failed is restarted. `begun`: somebody has been there. Before that nothing
  // is over, as images may take long to come.
  ExitRule(Duration linger, bool begun) : linger_(linger), begun_(begun) {}
  bool IsOver(const PodSight& sight, MonotonicTime now);
  bool begun() const { return begun_; }

 private:
  Duration linger_;
  bool begun_;
  std::optional<MonotonicTime> alone_since_;
};

// Are there processes in `proc` (usually "/proc") besides this one, its children, others of this
// program and the pod's pause? Nothing if this one is the first, as it is where the pod's
// containers do not share theirs.
std::optional<bool> OthersAlive(const std::string& proc, int self);

// Looks once a second; until it has begun more often, as a container may fail at once. With shared
// processes it first waits until it keeps that pace, as a program that starts under a small CPU
// limit does not, and then says so by FILE.watched: until then the kubelet holds the containers
// that come after this one, by a hook that runs AwaitWatch. Used on the loop's thread only.
class ExitWatch {
 public:
  struct Options {
    // Its appearance is the end. Beside it, FILE.begun tells a sidecar that is restarted in its pod
    // that somebody has been there.
    std::string file;
    bool shared_processes = false;  // those of other containers are in `proc`, and no others
    std::string proc = "/proc";
    // More than the wait before the last restart (160 s) that a Job allows where it does not say.
    Duration linger = std::chrono::minutes(3);
  };
  // Calls `on_over` once.
  ExitWatch(net::EventLoop& loop, const Clock& clock, Options options,
            std::function<std::size_t()> clients, std::function<void()> on_over);

 private:
  void Settle(MonotonicTime due, int looks_in_time);
  void Look();
  void Note(const std::string& file) const;

  net::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  std::function<std::size_t()> clients_;
  std::function<void()> on_over_;
  std::string begun_file_;
  std::string watched_file_;
  ExitRule rule_;
  net::Timer timer_;
};

// Blocks until the sidecar that writes FILE watches, but `patience` at most: training never waits
// for the cache.
void AwaitWatch(const std::string& file, Duration patience);

}  // namespace optcache::sidecar
