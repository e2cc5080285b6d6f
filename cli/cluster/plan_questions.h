#pragma once

// What the rollout subcommands ask of a cluster about a CachePlan, and how they change one: by
// kubectl.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/kubectl.h"
#include "cli/cluster/plan_resource.h"

namespace optcache::cli {

// Whether an object of a cluster can have it.
bool IsObjectName(std::string_view name);

// A CachePlan's name as kubectl takes them: {"imagenet"}, {"cacheplan/imagenet"} or {"cacheplan",
// "imagenet"}. kInvalidArgument: another kind, or no name that an object can have.
Result<std::string> PlanNameOf(const std::vector<std::string>& words);

// `name_space` may be empty: kubectl's own. kNotFound: there is none; if a Dataset of that name
// follows another plan, the message names it.
Result<PlanResource> AskForPlan(const Kubectl& kubectl, const std::string& name_space,
                                const std::string& name);
// The only one of the namespace. kInvalidArgument: there are several; kNotFound: there is none.
Result<PlanResource> AskForOnlyPlan(const Kubectl& kubectl, const std::string& name_space);

Result<std::vector<PlanRevision>> AskForRevisions(const Kubectl& kubectl, const PlanResource& plan);

// A merge patch.
Status PatchPlan(const Kubectl& kubectl, const PlanResource& plan, const kube::Json& patch);

}  // namespace optcache::cli
