#pragma once

// Tells the scheduler where a pod's Datasets are.

#include <string>
#include <vector>

#include "base/result.h"
#include "operator/webhook/json_access.h"
#include "operator/webhook/sidecar_spec.h"

namespace optcache::webhook {

// More machines than this are as good as any: the scheduler is not told of them.
inline constexpr std::size_t kMaxPreferredMachines = 64;
// A pod must fit into one request to the API server.
inline constexpr std::size_t kMaxRequiredMachines = 2000;

struct Affinity {
  Json value;                         // the whole `affinity` of the pod; null: as it came
  std::vector<std::string> warnings;  // of Datasets that ask for what cannot be said yet
};

// Adds to what the pod says itself, and takes nothing away. kNotFound: two Datasets are required
// and no machine holds both.
Result<Affinity> AddAffinity(const Json& pod, const std::vector<ChosenDataset>& datasets);

}  // namespace optcache::webhook
