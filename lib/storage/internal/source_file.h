#pragma once

// What can be wrong with a file of a source, in words that say what to do.

#include <string>

#include "base/result.h"

namespace optcache::storage::internal {

// The status of an errno. Where it is one of rights, it says as whom the file is read. kUnavailable
// is what a mount says while its server is away.
Status FileError(int error_number, const std::string& what);

// The path without links on its way, by which CheckInside compares. FileError if there is none.
Result<std::string> RealPath(const std::string& path);

// kPermissionDenied: `real_path`, the file behind a link named `what`, lies outside `real_root`.
// A user who writes into a source could otherwise have any file of the reader's machine read.
Status CheckInside(const std::string& real_root, const std::string& real_path,
                   const std::string& what);

// CheckInside of an open file. Ok where the system does not tell its path.
Status CheckOpenInside(const std::string& real_root, int fd, const std::string& what);

}  // namespace optcache::storage::internal
