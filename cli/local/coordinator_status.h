#pragma once

#include <string>

#include "base/result.h"

namespace optcache::cli {

// What the coordinator at `url` ("unix:/path" or "http://host:port") says of the cache, as JSON
// (coordination/status.h). kUnavailable: it does not answer, or is none. kPermissionDenied: it is
// another user's.
Result<std::string> FetchStatus(const std::string& url);
// The manifest of that digest, as it has it.
Result<std::string> FetchManifest(const std::string& url, const std::string& digest);

}  // namespace optcache::cli
