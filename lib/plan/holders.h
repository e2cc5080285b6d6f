#pragma once

// Which node holds each sample: the state a plan starts from and ends in.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "plan/pass_plan.h"

namespace optcache::plan {

// By sample; kNoNode: nobody. A sample has at most one holder.
using Holders = std::vector<NodeIndex>;

// What `holders` becomes when the reads of `plan` before position `until` are done; `order` is the
// order of the plan's pass. This is how the base of a version is derived at its cut.
void Advance(const PassPlan& plan, std::span<const SampleId> order, Position until,
             Holders& holders);

// The same holders when the member list changes: new_index[old] is the node's new index, kNoNode if
// it left.
void Renumber(std::span<const NodeIndex> new_index, Holders& holders);

// Names a state; equal wherever computed. Exact bytes: docs/formats/plan.md.
std::uint64_t DigestOf(const Holders& holders);

}  // namespace optcache::plan
