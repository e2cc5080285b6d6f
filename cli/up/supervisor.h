#pragma once

// Starts child processes, starts those that die again, and stops them all.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/status.h"

namespace optcache::cli {

struct ChildSpec {
  std::string name;                  // for people: "node-0"
  std::vector<std::string> command;  // program and its arguments
  std::string log_file;              // what it prints is appended there
};

struct SupervisorOptions {
  BackoffOptions restart = {.first = std::chrono::milliseconds(250),
                            .limit = std::chrono::seconds(10)};
  Duration healthy_after = std::chrono::seconds(30);  // then the backoff begins again
  int failed_starts_max = 3;  // of a child that never was healthy and ends with an error
  Duration stop_grace = std::chrono::seconds(5);  // between SIGTERM and SIGKILL
};

// Each child has a process group of its own, so Ctrl-C reaches it only through Stop. It goes on if
// this process is killed, until somebody calls StopOrphans (cli/up/orphans.h). Used on one
// thread.
class Supervisor {
 public:
  // `say` is told in one sentence what happened: "node-0 died (signal 9), starts again in 0.3 s".
  Supervisor(SupervisorOptions options, std::function<void(const std::string&)> say);
  // Kills and reaps what still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // kNotFound or kPermissionDenied if there is no such program.
  Status Start(ChildSpec spec, MonotonicTime now);

  // Notices who died and starts again whose time has come. Several times a second.
  void Tick(MonotonicTime now);

  // SIGTERM to all; later ticks send SIGKILL to those that linger. Nobody is started again.
  void Stop(MonotonicTime now);

  std::size_t running() const;
  std::uint64_t restarts() const { return restarts_; }
  // kUnavailable once a child cannot be started: failed_starts_max times it ended with an error, or
  // its program could not be run, before it ever was healthy. The message ends with the last line
  // that it printed, or with what was wrong with the program.
  const Status& failure() const { return failure_; }
  // 0: not running. For tests.
  pid_t PidOf(const std::string& name) const;

 private:
  struct Child {
    ChildSpec spec;
    Backoff backoff;
    pid_t pid = 0;  // 0: not running
    MonotonicTime started;
    MonotonicTime start_at;  // while it is not running
    int failed_starts = 0;
    bool was_healthy = false;
  };

  Status Launch(Child& child, MonotonicTime now);
  void OnDeath(Child& child, int wait_status, MonotonicTime now);
  void CountFailedStart(Child& child, const std::string& why);

  SupervisorOptions options_;
  std::function<void(const std::string&)> say_;
  std::vector<std::unique_ptr<Child>> children_;
  bool stopping_ = false;
  bool killed_ = false;
  MonotonicTime kill_at_;
  Status failure_;
  std::uint64_t restarts_ = 0;
};

}  // namespace optcache::cli
