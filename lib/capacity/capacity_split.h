#pragma once

// How the members' memory is divided among the datasets.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "coordination/state.h"

namespace optcache::coordination {

// What one dataset wants in all, and of whom.
struct CapacityWish {
  ByteCount bytes = 0;
  std::optional<std::vector<MemberId>> members;  // ascending; nullopt: of all
  std::vector<ByteCount> shares;  // of each of `members`; empty: in proportion to what they offer
  // In memory and on disk together: what memory does not give is asked of the members' disks, in
  // proportion to what they offer. 0: of none.
  ByteCount with_disk = 0;
};

// Each wish is divided over its members as it says, or in proportion to the memory they offer.
// Where the wishes add up to more than a member has, each of them gives way in proportion, so no
// member is asked for more than it offers. Disks are divided alike, for what memory does not give.
// One list a dataset, ascending by member, with each of its members in it.
std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<CapacityWish>& wishes);

// One manifest of a Dataset: how many ranks read it, and what it has by the state in force.
struct ManifestClaim {
  std::size_t ranks = 0;
  std::span<const MemberCapacity> in_force;  // ascending by member
};

// Divides what a Dataset was granted among its manifests, in proportion to the ranks that read
// them; while nobody does, the first one has it all. A share shrinks at once, and grows only into
// what the others' shares in force leave: together they never exceed the grant. As much of each
// lies on disk as of the grant. One list a claim, with each of the grant's members in it.
std::vector<std::vector<MemberCapacity>> ShareGrant(const std::vector<MemberCapacity>& grant,
                                                    const std::vector<ManifestClaim>& claims);

}  // namespace optcache::coordination
