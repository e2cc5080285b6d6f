#pragma once

// What a node follows: the dataset's own revision, or its update, if it is among the members of
// that (docs/formats/rollout.md). Pure.

#include <string>
#include <vector>

#include "coordination/state.h"

namespace optcache::node {

struct Following {
  std::string revision;
  coordination::Retention retention = coordination::Retention::kOptimal;
  coordination::Objective objective = coordination::Objective::kBytes;
  // What is planned: complete ones of known order, as the revision has them.
  std::vector<coordination::StreamState> streams;
  // Of all members; those that follow another revision have 0.
  std::vector<coordination::MemberCapacity> capacities;

  bool HasPlan() const {
    return retention == coordination::Retention::kOptimal && !streams.empty();
  }
  // All but the revision's name: members that follow either do the same.
  bool IsLike(const Following& other) const;
};

Following Follow(const coordination::DatasetState& state, coordination::MemberId self);

// As if every member followed `revision`; `expected` are streams beside those of the state.
Following FollowOnTrial(const coordination::DatasetState& state,
                        const coordination::TrialState& trial);

}  // namespace optcache::node
