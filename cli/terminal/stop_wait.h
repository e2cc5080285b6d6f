#pragma once

#include <csignal>
#include <functional>

#include "base/clock.h"

namespace optcache::cli {

// Waits this long, as StopWait::For does; false: give up now.
using Wait = std::function<bool(Duration time)>;

// Waiting that ^C ends, for a subcommand that has to tidy up before it goes. While this lives,
// SIGINT, SIGTERM and SIGHUP do nothing else. Not thread-safe: of the only thread.
class StopWait {
 public:
  StopWait();
  ~StopWait();
  StopWait(const StopWait&) = delete;
  StopWait& operator=(const StopWait&) = delete;

  // False, and soon: one of these signals has come.
  bool For(Duration time);

 private:
  sigset_t awaited_{};
  sigset_t before_{};
};

}  // namespace optcache::cli
