#pragma once

// `optcache plan suggest`: the least capacity for the jobs that read a dataset now.

#include <string>

#include "base/result.h"
#include "cli/cluster/kubectl.h"
#include "cli/local/running_cache.h"
#include "cli/plan/suggestion.h"
#include "cli/terminal/action.h"
#include "kube/object.h"

namespace optcache::cli {

void AddPlanSuggest(CLI::App& parent, Action& chosen);

// Writes `capacity` as cache.capacity of the Dataset `resource`, as it was read. What kubectl says.
// kUnavailable: the capacity is another one by now, or the API server refuses it.
Result<std::string> WriteCapacity(const Kubectl& kubectl, const kube::Json& resource,
                                  const std::string& capacity);

// The pages of the sidecars that serve a cache's dataset in the namespaces of its jobs.
// kInvalidArgument: there are none, or too many to ask; kPermissionDenied: pods may not
// be listed or asked, and what to do.
Result<PagesBySidecar> SidecarPagesInCluster(const Kubectl& kubectl, const RunningCache& cache);

}  // namespace optcache::cli
