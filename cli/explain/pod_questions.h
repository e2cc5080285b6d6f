#pragma once

// What `kubectl optcache explain pod` asks of a cluster: by kubectl, with the rights of the user.

#include <string>

#include "base/result.h"
#include "cli/cluster/kubectl.h"
#include "cli/explain/pod_diagnosis.h"

namespace optcache::cli {

// `pod` in `name_space` (empty: kubectl's own).
Result<PodAnswers> AskAboutPod(const Kubectl& kubectl, const std::string& name_space,
                               const std::string& pod);

}  // namespace optcache::cli
