#pragma once

// plan diff, plan predict, and plan show of a CachePlan: what a cluster plans. Files of plans are
// cli/plan/plan.cc's.

#include <string>

#include "base/status.h"
#include "cli/cluster/kubectl.h"
#include "cli/cluster/plan_resource.h"
#include "cli/terminal/action.h"

namespace optcache::cli {

struct PlanInClusterFlags {
  KubectlOptions kubectl;
  std::string name_space;
  std::string output = "text";
};

// --namespace, --output and kubectl's.
void AddPlanInClusterFlags(CLI::App& command, PlanInClusterFlags& flags);

// `plan show` takes either: is it a CachePlan's name? What begins with "cacheplan/" is, and what is
// neither a file nor looks like one.
bool MeansCachePlan(const std::string& word);

Status ShowCachePlan(const std::string& name, const PlanInClusterFlags& flags);

void AddPlanDiff(CLI::App& parent, Action& chosen);
void AddPlanPredict(CLI::App& parent, Action& chosen);

// Pure: what `plan show` prints of one.
std::string CachePlanAsText(const PlanResource& plan, const std::vector<PlanRevision>& revisions);

}  // namespace optcache::cli
