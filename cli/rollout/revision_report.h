#pragma once

// Revisions of a CachePlan as text: what `rollout history` and `plan diff` print.

#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/plan_resource.h"

namespace optcache::cli {

std::string HistoryAsTable(const PlanResource& plan, const std::vector<PlanRevision>& revisions);
std::string RevisionAsText(const PlanResource& plan, const PlanRevision& revision);
std::string HistoryAsJson(const PlanResource& plan, const std::vector<PlanRevision>& revisions);
std::string RevisionAsJson(const PlanResource& plan, const PlanRevision& revision);

// By number, hash, the beginning of a hash (4 digits or more), name, or as "current" and "update".
// kNotFound says which there are; kInvalidArgument: several hashes begin so.
Result<PlanRevision> ChooseRevision(const PlanResource& plan,
                                    const std::vector<PlanRevision>& revisions,
                                    std::string_view which);

// What to go back to from the spec: where an update is held, stopped or under way, the revision in
// force; else the newest of other content; or the one of `number` (not 0). kNotFound: there is
// none.
Result<PlanRevision> RevisionToUndo(const PlanResource& plan,
                                    const std::vector<PlanRevision>& revisions,
                                    std::uint64_t number);

// Where two revisions differ, in content and in what is predicted of them, as far as it is known.
std::string DiffAsTable(const PlanResource& plan, const PlanRevision& from, const PlanRevision& to);
std::string DiffAsJson(const PlanResource& plan, const PlanRevision& from, const PlanRevision& to);

}  // namespace optcache::cli
