#pragma once

// Questions about a desired state. Pure.

#include <string_view>
#include <vector>

#include "coordination/state.h"

namespace optcache::coordination {

// Those of the present manifests, then those that retire.
std::vector<const DatasetState*> AllDatasets(const DesiredState& state);

// Null if the state has no such dataset. One that retires has its key alone.
const DatasetState* FindDataset(const DesiredState& state, DatasetKey key);
const DatasetState* FindDataset(const DesiredState& state, std::string_view name);

bool IsRetiring(const DesiredState& state, DatasetKey key);

// "vision" of "vision/imagenet", the name of a dataset or of a stream; all of a name without a
// slash.
std::string_view NamespaceOf(std::string_view name);

}  // namespace optcache::coordination
