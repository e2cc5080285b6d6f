#pragma once

// What a running cache says of a dataset and of the jobs that read it, for simulations of them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "coordination/status.h"
#include "dataset/capacity_goal.h"
#include "dataset/store_price.h"
#include "kube/object.h"
#include "sampler/recipe.h"

namespace optcache::cli {

struct RunningJob {
  std::string name;
  sampler::Recipe recipe;
  std::uint64_t epoch = 0;       // of the present pass
  std::uint32_t epoch_step = 1;  // to that of the next pass
  Position position = 0;         // in the present pass, of all ranks
  Position length = 0;           // of a pass as it is read; 0: not known
  double rate = 0;               // reads a second; 0: not measured
  friend bool operator==(const RunningJob&, const RunningJob&) = default;
};

struct RunningCache {
  std::string dataset;  // NAMESPACE/NAME
  std::string manifest_digest;
  std::uint64_t samples = 0;
  ByteCount bytes = 0;
  ByteCount capacity = 0;   // that the nodes grant now
  ByteCount maximum = 0;    // that the Dataset asks for; in a cluster alone
  std::uint32_t nodes = 0;  // on which the dataset is placed
  coordination::Retention retention = coordination::Retention::kOptimal;
  coordination::Objective objective = coordination::Objective::kBytes;
  std::vector<RunningJob> jobs;                 // one at least
  dataset::StorePrice price;                    // spec.cost; in a cluster alone
  std::optional<dataset::CapacityGoal> goal{};  // spec.goal; in a cluster alone
};

// Both: kNotFound: there is no such dataset, or no job reads it; kInvalidArgument: what is there
// cannot be simulated, and why; kUnavailable: it is not ready yet.

// Of the dataset NAME or NAMESPACE/NAME (cli/local/dataset_name.h); empty: of the only one.
Result<RunningCache> RunningCacheOf(const coordination::ClusterStatus& status,
                                    const std::string& name);
// Of a CachePlan and its Dataset.
Result<RunningCache> RunningCacheOf(const kube::Json& plan, const kube::Json& resource);

}  // namespace optcache::cli
