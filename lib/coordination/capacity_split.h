#pragma once

// How the members' memory is divided among the datasets.

#include <optional>
#include <vector>

#include "coordination/state.h"

namespace optcache::coordination {

// What one dataset wants in all, and of whom.
struct CapacityWish {
  ByteCount bytes = 0;
  std::optional<std::vector<MemberId>> members;  // ascending; nullopt: of all
};

// Each wish is divided over its members in proportion to the memory they offer. Where the wishes
// add up to more than a member has, each of them gives way in proportion, so no member is asked for
// more than it offers. One list a dataset, ascending by member, with each of its members in it.
std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<CapacityWish>& wishes);

}  // namespace optcache::coordination
