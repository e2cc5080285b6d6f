#pragma once

// What `kubectl optcache status` asks of a cluster: by kubectl, with the rights of the user.

#include <string>

#include "base/result.h"
#include "cli/cluster/kubectl.h"
#include "cli/status/cluster_view.h"

namespace optcache::cli {

// Asks for what ClusterView shows, with the Datasets of one namespace (empty: of all). Only these
// are needed; what else is forbidden becomes a note. kNotFound says that optcache is not installed
// there.
Result<ClusterAnswers> AskCluster(const Kubectl& kubectl, const std::string& name_space);

}  // namespace optcache::cli
