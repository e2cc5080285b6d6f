#pragma once

// Carries out decisions read by read and checks them: is each sample where the plan says, and does
// no node ever hold more than its capacity? It knows nothing of how plans are made, so tests trust
// its numbers rather than the planner's own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "plan/fitted_base.h"
#include "plan/holders.h"
#include "plan/pass_plan.h"
#include "plan/sizes.h"

namespace optcache::plan {

// Not thread-safe: one owner.
class Replay {
 public:
  Replay(Sizes sizes, std::vector<ByteCount> capacities, Holders base = {});

  void Evict(std::span<const SampleId> samples);
  // All of them, after which every node must have room for what it holds.
  void Relocate(std::span<const Relocation> moves);
  // The read of `sample` by a rank on `reader`; `share` is how far into its pass it lies, in [0,
  // 1).
  void Read(SampleId sample, NodeIndex reader, const Decision& decision, std::size_t tenth);

  const PlanStats& stats() const { return stats_; }
  const Holders& holders() const { return holders_; }
  // Reads after which some node held more than its capacity; 0 for a correct plan.
  std::uint64_t capacity_exceeded() const { return capacity_exceeded_; }
  // Reads whose sample was not where the plan said; 0 for a correct plan.
  std::uint64_t misplaced() const { return misplaced_; }

 private:
  Sizes sizes_;
  std::vector<ByteCount> capacities_;
  std::vector<ByteCount> used_;
  Holders holders_;
  PlanStats stats_;
  std::uint64_t capacity_exceeded_ = 0;
  std::uint64_t misplaced_ = 0;
};

}  // namespace optcache::plan
