#pragma once

// Unix stream sockets by path.

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::handoff {

// A non-blocking socket that listens at `path`, open to every user. Replaces a socket that nobody
// listens to any more. kConflict: somebody does, or it is no socket; kInvalidArgument: the path is
// too long.
Result<UniqueFd> ListenAt(const std::string& path);

// Connects, blocking. kNotFound: no socket there; kUnavailable: nobody listens to it.
Result<UniqueFd> ConnectTo(const std::string& path);

// The same, but for `patience` at most. kDeadlineExceeded: a process listens and accepts nobody,
// and no more clients may wait for it. A send waits for `patience` at most too.
Result<UniqueFd> ConnectWithin(const std::string& path, Duration patience);

}  // namespace optcache::handoff
