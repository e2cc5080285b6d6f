#pragma once

#include <string>

#include "base/result.h"

namespace optcache::cli {

// What the coordinator at `url` says of the cache, as JSON (coordination/status.h). kUnavailable:
// it does not answer, or is none.
Result<std::string> FetchStatus(const std::string& url);

}  // namespace optcache::cli
