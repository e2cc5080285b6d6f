#pragma once

// OPT4TorchDataset's published planner and its two runtimes, decision for decision, as a baseline.
// It differs from MIN with bypass in this: when what came is used later than all that is held, the
// heap entry of the last of these is gone already, and that sample can't be evicted any more until
// it is read again. Its shared runtime also caches reads for which there is no decision, if a slot
// is free; nobody reads these again, and their slots are lost.
//
// It counts samples: a slot holds any of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "simulation/policies/policy.h"

namespace optcache::plan {

// One row of its decision table.
struct Opt4TorchStep {
  std::int8_t should_cache = -1;  // 1: yes; 0: no; -1: no decision
  SampleId victim = kNoSample;    // to be evicted first
  SampleId release = kNoSample;   // read for the last time

  friend bool operator==(const Opt4TorchStep&, const Opt4TorchStep&) = default;
};

// By read. `slots` is at least 1.
std::vector<Opt4TorchStep> PlanAsOpt4Torch(const Future& future, std::uint32_t sample_count,
                                           std::size_t slots);

enum class Opt4TorchRuntime {
  kOneProcess,  // its OPTCacheDecorator
  kShared,      // its SharedOPTCacheDecorator
};
// Carries such a table out; one step a read. `steps` must outlive it.
std::unique_ptr<Policy> RunOpt4Torch(std::span<const Opt4TorchStep> steps,
                                     std::uint32_t sample_count, std::size_t slots,
                                     Opt4TorchRuntime runtime);

}  // namespace optcache::plan
