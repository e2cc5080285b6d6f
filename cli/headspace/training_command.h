#pragma once

// A training job that is run to be measured: one command, and the processes that it starts.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::cli {

// In a process group of its own, so that Ctrl-C does not reach it but through Stop. Prints to
// standard error. Used on one thread.
class TrainingCommand {
 public:
  TrainingCommand() = default;
  // Stop, for a second.
  ~TrainingCommand();
  TrainingCommand(const TrainingCommand&) = delete;
  TrainingCommand& operator=(const TrainingCommand&) = delete;

  // Whether Start would find it: kNotFound or kPermissionDenied as there.
  static Status Find(const std::string& program);

  // Found by PATH; `environment` is added to this process's. kNotFound or kPermissionDenied: it
  // cannot be run.
  Status Start(std::vector<std::string> command,
               const std::map<std::string, std::string>& environment);

  // How it has ended: "exit status 1"; nothing while it runs, or if it was not started.
  std::optional<std::string> Ended();
  pid_t pid() const { return pid_; }
  bool running() const { return pid_ != 0; }

  // SIGTERM to all of its group, and SIGKILL to who is left after `grace`; returns when it has
  // ended.
  void Stop(Duration grace);

 private:
  pid_t pid_ = 0;  // 0: not running
  std::optional<std::string> ended_;
};

}  // namespace optcache::cli
