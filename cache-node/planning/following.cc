#include "cache-node/planning/following.h"

#include <algorithm>
#include <utility>

#include "coordination/revisions.h"

namespace optcache::node {
namespace {

using coordination::DatasetState;
using coordination::MemberCapacity;
using coordination::MemberId;
using coordination::RevisionState;
using coordination::StreamState;

Following Take(const RevisionState& revision, std::vector<StreamState> streams) {
  Following following{
      .revision = revision.name, .retention = revision.retention, .objective = revision.objective};
  for (StreamState& stream : coordination::StreamsOf(revision, std::move(streams))) {
    // An order that is known by its recipe goes on after the lists that have been handed over.
    if (stream.recipe.known) stream.traces.clear();
    stream.generation = {};  // no plan goes by it
    if (stream.complete && coordination::HasOrder(stream))
      following.streams.push_back(std::move(stream));
  }
  return following;
}

bool IsUpdated(const DatasetState& state, MemberId member) {
  return state.update && std::ranges::binary_search(state.update->members, member);
}

}  // namespace

bool Following::IsLike(const Following& other) const {
  return retention == other.retention && objective == other.objective && streams == other.streams &&
         capacities == other.capacities;
}

Following Follow(const DatasetState& state, MemberId self) {
  const RevisionState own{.name = state.revision,
                          .retention = state.retention,
                          .objective = state.objective,
                          .recipes = {}};
  const bool is_updated = IsUpdated(state, self);
  Following following = Take(is_updated ? state.update->revision : own, state.streams);
  for (const MemberCapacity& capacity : state.capacities) {
    const bool same = IsUpdated(state, capacity.member) == is_updated;
    following.capacities.push_back({.member = capacity.member,
                                    .bytes = same ? capacity.bytes : 0,
                                    .disk = same ? capacity.disk : 0});
  }
  return following;
}

Following FollowOnTrial(const DatasetState& state, const coordination::TrialState& trial) {
  std::vector<StreamState> streams = state.streams;
  streams.insert(streams.end(), trial.expected.begin(), trial.expected.end());
  std::ranges::stable_sort(streams, {}, &StreamState::id);
  Following following = Take(trial.revision, std::move(streams));
  following.capacities = state.capacities;
  return following;
}

}  // namespace optcache::node
