#pragma once

// The plan of a large cluster: how long it takes to derive, and what nodes say to each other by it.

#include <cstdint>
#include <string>

#include "plan/plan.h"

namespace optcache::bench {

inline constexpr double kCapacity = 0.3;  // of the dataset

struct Size {
  std::uint32_t nodes = 1000;
  std::uint32_t jobs = 8;
  std::uint32_t samples = 10'000'000;
  std::uint32_t pass_seconds = 1000;
};

// As far as a trial is derived: two windows.
struct FirstPlan {
  double seconds = 0;     // of CPU
  plan::PlanStats stats;  // of the first window
};
FirstPlan DerivePlan(const Size& size);

// In the first pass of all jobs, a node's mean; payloads apart. JSON.
std::string NodesOfOnePass(const Size& size, const plan::PlanStats& stats);

}  // namespace optcache::bench
