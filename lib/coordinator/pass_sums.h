#pragma once

// What several nodes have counted of the same passes, together.

#include <vector>

#include "coordination/state.h"

namespace optcache::coordination {

// Adds up what was counted of the same pass of the same stream; ascending by both then.
void AddUp(std::vector<PassReport>& passes);

// Of each stream only the latest kPassesReported, of passes that AddUp has been through.
void KeepLatest(std::vector<PassReport>& passes);

}  // namespace optcache::coordination
