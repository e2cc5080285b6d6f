#pragma once

// How the members' memory is divided among the datasets.

#include <vector>

#include "coordination/state.h"

namespace optcache::coordination {

// wishes[d]: what dataset d wants in all. Each wish is divided over the members in proportion to
// the memory they offer. Where the wishes add up to more than a member has, each of them gives way
// in proportion, so no member is asked for more than it offers. One list a dataset, ascending by
// member, with every member in it.
std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<ByteCount>& wishes);

}  // namespace optcache::coordination
