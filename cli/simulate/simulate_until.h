#pragma once

// `optcache simulate --until`: the goal as it is written, and what is printed and drawn of the
// least capacity that reaches it. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dataset/capacity_goal.h"
#include "simulation/least_capacity.h"
#include "simulation/simulate.h"

namespace optcache::cli {

// Without a price.
simulation::Goal SimulatedGoal(const dataset::CapacityGoal& goal);

// "waiting=2%", "waiting=0.02" or "cost=12.5". kInvalidArgument names the flag.
Result<simulation::Goal> ParseGoal(std::string_view text);

struct UntilReport {
  struct Line {
    simulation::PolicyKind policy;
    simulation::LeastCapacity found;
    simulation::PolicyResult result;  // at the least capacity; if there is none, at 1
    std::uint64_t store_reads = 0;    // in `result`, of the reads that count for the goal
  };
  simulation::Goal goal;
  double store_bandwidth = 0;  // of a goal of waiting
  // Such a goal does not count these first ones, of the job whose epochs take longest.
  double epochs_left_out = 0;
  std::uint64_t first_reads =
      0;  // of the reads that count, those that are the first of their sample
  ByteCount dataset_bytes = 0;
  std::vector<Line> lines;
};

// {"goal": {...}, "policies": {name: {capacity, ..., "curve": [...]}}}; capacity is null where the
// goal is not reached, and the other numbers are then those at a capacity of 1.
std::string UntilAsJson(const UntilReport& report);
// A head, then a line a policy.
std::string UntilAsCsv(const UntilReport& report);
// A table for people, and a sentence for each policy that does not reach the goal.
std::string UntilAsTable(const UntilReport& report);
// What was measured over the capacity, with the least capacity marked. SVG.
std::string DrawUntil(const UntilReport& report);

}  // namespace optcache::cli
