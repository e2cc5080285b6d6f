#pragma once

// The policies that `simulate` compares the plan with. They do not know the future, and own samples
// by hash: each sample has a home node, which alone decides whether to keep it.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"

namespace optcache::plan {

// One cluster under one policy; equal sizes. Not thread-safe: one owner.
class Policy {
 public:
  virtual ~Policy() = default;
  // Sample `sample` is read: whether its home held it. Afterwards the home may hold it.
  virtual bool Read(SampleId sample) = 0;
  // Whether its home holds it now.
  virtual bool Holds(SampleId sample) const = 0;
};

// By home node, how many samples it can hold.
using HomeCapacities = std::vector<std::uint64_t>;

// The home of a sample among `nodes`.
NodeIndex HomeOf(SampleId sample, std::size_t nodes);

// Keep what comes until full, never evict (MinIO in CoorDL).
std::unique_ptr<Policy> MakePinPolicy(std::uint32_t samples, HomeCapacities capacities);
// Evict what was used least recently.
std::unique_ptr<Policy> MakeLruPolicy(std::uint32_t samples, HomeCapacities capacities);
// Keep nothing.
std::unique_ptr<Policy> MakeNonePolicy();

}  // namespace optcache::plan
