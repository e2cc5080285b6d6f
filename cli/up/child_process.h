#pragma once

// How child processes begin and end.

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace optcache::cli {

struct ChildStart {
  std::vector<std::string> command;  // the program, found by PATH, and its arguments
  std::map<std::string, std::string> environment{};  // added to this process's
  int output = STDERR_FILENO;                        // becomes its standard output
  int error = STDERR_FILENO;                         // becomes its standard error
  // Called in the child, once all of that is so: between fork and exec, so only calls that are safe
  // there.
  std::function<void()> prepare{};
};

// In a process group of its own, so that Ctrl-C does not reach it; it reads nothing from its
// standard input. kNotFound or kPermissionDenied: it cannot be run.
Result<pid_t> StartChild(ChildStart start);

// "exit status 1", or "signal 9".
std::string HowItEnded(int wait_status);

}  // namespace optcache::cli
