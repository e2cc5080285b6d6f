#pragma once

// What an `optcache up` that was killed has left running. Its parts go on, for the sake of the jobs
// that read through them, until the next one in the same folder takes their place.
//
// A process is known by the lock that it holds on its log: the kernel lets go of it when the
// process ends, however it ends, and says whose it is.

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::cli {

// Locks the log behind `log_fd`, which is open for writing, until this process ends or closes any
// descriptor of that log. Holds on through exec; safe between fork and exec.
void MarkWriter(int log_fd);

// Ends the processes that hold the logs in `log_dir`: SIGTERM to all, and SIGKILL to those that are
// still there after `grace`. Returns how many there were when the last has ended.
Result<std::size_t> StopOrphans(const std::string& log_dir, Duration grace);

}  // namespace optcache::cli
