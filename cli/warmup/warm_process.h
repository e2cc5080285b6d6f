#pragma once

// One `optcache-sidecar warm` as a child of this process.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::cli {

// In a process group of its own, so that Ctrl-C reaches it through Stop alone; ends with this
// process, however that ends. Used on one thread.
class WarmProcess {
 public:
  WarmProcess() = default;
  // SIGKILL, if it still runs.
  ~WarmProcess();
  WarmProcess(WarmProcess&& other) noexcept;
  WarmProcess& operator=(WarmProcess&&) = delete;

  // What it prints to standard error is appended to `log_file`. kNotFound or kPermissionDenied: it
  // cannot be run.
  Status Start(std::vector<std::string> command, const std::string& log_file);
  // Takes in what it has printed. False once it has ended, and all of that is in.
  bool Look();
  // SIGTERM.
  void Stop() const;

  // The last whole line that it has printed; empty: none.
  const std::string& last_line() const { return last_line_; }
  // Once it has ended: with status 0?
  bool succeeded() const { return succeeded_; }

 private:
  void TakeLines();

  pid_t pid_ = 0;  // 0: not running
  UniqueFd output_;
  std::string rest_;  // of a line that is not whole
  std::string last_line_;
  bool succeeded_ = false;
};

}  // namespace optcache::cli
