#pragma once

// How far a rollout is, in one line, and whether it is over: what `rollout status` says.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/plan_resource.h"

namespace optcache::cli {

enum class RolloutOutcome : std::uint8_t {
  kUnderWay,
  kSucceeded,
  kFailed  // it was stopped, or waits longer for nodes than it may
};

struct RolloutProgress {
  RolloutOutcome outcome = RolloutOutcome::kUnderWay;
  // Of a failure what standard error gets; else a line, "Waiting for ...".
  std::string line;
  std::string advice;  // what to do next; empty: nothing
  // Nodes, or passes, of those that the phase waits for; 0 of 0: nothing is counted.
  std::uint64_t done = 0;
  std::uint64_t all = 0;
  friend bool operator==(const RolloutProgress&, const RolloutProgress&) = default;
};

RolloutProgress TellRollout(const PlanResource& plan, const std::vector<PlanRevision>& revisions);

// "[########------------]  2 of 5"; nothing where nothing is counted.
std::string RolloutBar(const RolloutProgress& progress);

// For scripts.
std::string RolloutAsJson(const PlanResource& plan, const std::vector<PlanRevision>& revisions,
                          const RolloutProgress& progress);

}  // namespace optcache::cli
