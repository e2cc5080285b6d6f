#pragma once

// What `rollout pause`, `resume`, `undo` and `restart` do. Each answers with the line to print, in
// kubectl's words.

#include <cstdint>
#include <string>

#include "cli/cluster/kubectl.h"
#include "cli/cluster/plan_resource.h"

namespace optcache::cli {

// kInvalidArgument: it is as it shall be already.
Result<std::string> PauseRollout(const Kubectl& kubectl, const PlanResource& plan);
Result<std::string> ResumeRollout(const Kubectl& kubectl, const PlanResource& plan);

// `number` 0: the newest revision of other content. kInvalidArgument: the rollout is paused, and
// the revision is not the one in force; kNotFound: there is no such revision.
Result<std::string> UndoRollout(const Kubectl& kubectl, const PlanResource& plan,
                                std::uint64_t number);

// `now` is RFC 3339. kInvalidArgument: the rollout is paused, or was restarted within that second;
// kUnavailable: a rollout is under way, so that there is nothing to restart.
Result<std::string> RestartRollout(const Kubectl& kubectl, const PlanResource& plan,
                                   const std::string& now);

}  // namespace optcache::cli
