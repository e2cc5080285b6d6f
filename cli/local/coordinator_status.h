#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "coordination/status.h"

namespace optcache::cli {

struct CoordinatorAnswer {
  coordination::ClusterStatus status;
  std::string json;  // the same, as it came
};

// What the coordinator at `url` ("unix:/path" or "http://host:port") says of the cache.
// kUnavailable: it does not answer, or is none. kPermissionDenied: it is another user's.
Result<CoordinatorAnswer> AskCoordinator(const std::string& url);
// The manifest of that digest, as it has it.
Result<std::string> FetchManifest(const std::string& url, const std::string& digest);

// The pages of metrics of its sidecars.
std::vector<std::string> SidecarUrls(const coordination::ClusterStatus& status);

}  // namespace optcache::cli
