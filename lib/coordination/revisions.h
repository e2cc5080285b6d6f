#pragma once

// Which revision of a CachePlan each member follows, and what orders it takes the streams to have
// (docs/formats/rollout.md). Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordination/dataset_spec.h"
#include "coordination/state.h"

namespace optcache::coordination {

// The revisions that a plan is fixed with. `own` has no recipes: the streams have them.
struct Assignment {
  RevisionState own;
  std::optional<UpdateState> update;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

// NAMESPACE/OWNER/DATASET/LOADER, the name of a stream; what it lacks is empty.
struct StreamNameParts {
  std::string_view name_space;
  std::string_view owner;
  std::string_view dataset;
  std::string_view loader;
};
StreamNameParts PartsOf(std::string_view stream);

// A stream's job is its owner without what tells it from others of its name in time, a dot and
// eight digits of its UID; empty: it has none.
std::string_view JobOf(std::string_view stream);

// The order that `jobs` gives to a stream whose ranks announce none; nullptr: none of that job and
// world. Borrowed from `jobs`.
const Recipe* RecipeOf(const std::vector<JobRecipe>& jobs, const StreamState& stream);

// How what a job announces differs from what `jobs` says of it, with both values; empty: not at
// all, or there is nothing to compare.
std::string DifferenceFrom(const std::vector<JobRecipe>& jobs, const StreamState& announced);

// `streams` as `revision` has them.
std::vector<StreamState> StreamsOf(const RevisionState& revision, std::vector<StreamState> streams);

// What that member follows.
const RevisionState& FollowedBy(MemberId member, const Assignment& assignment);

// Jobs of `jobs` that none of `streams` belongs to, as streams that read through `members` in turn.
// `dataset` is "namespace/name".
std::vector<StreamState> ExpectedStreams(const std::vector<JobRecipe>& jobs,
                                         std::string_view dataset,
                                         const std::vector<StreamState>& streams,
                                         const std::vector<MemberCapacity>& members);

}  // namespace optcache::coordination
