#include "coordination/desired_state.h"

#include <algorithm>

namespace optcache::coordination {

std::vector<const DatasetState*> AllDatasets(const DesiredState& state) {
  std::vector<const DatasetState*> all;
  for (const auto* list : {&state.datasets, &state.retiring}) {
    for (const DatasetState& dataset : *list)
      all.push_back(&dataset);
  }
  return all;
}

const DatasetState* FindDataset(const DesiredState& state, DatasetKey key) {
  for (const auto* list : {&state.datasets, &state.retiring}) {
    const auto found = std::ranges::find(*list, key, &DatasetState::key);
    if (found != list->end()) return &*found;
  }
  return nullptr;
}

const DatasetState* FindDataset(const DesiredState& state, std::string_view name) {
  const auto found = std::ranges::find(state.datasets, name, &DatasetState::name);
  return found == state.datasets.end() ? nullptr : &*found;
}

bool IsRetiring(const DesiredState& state, DatasetKey key) {
  return std::ranges::find(state.retiring, key, &DatasetState::key) != state.retiring.end();
}

std::string_view NamespaceOf(std::string_view name) {
  return name.substr(0, name.find('/'));
}

}  // namespace optcache::coordination
