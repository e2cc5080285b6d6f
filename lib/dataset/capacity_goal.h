#pragma once

// What a cache is to reach by its capacity: `spec.goal` of a CachePlan, and `--until`.

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace optcache::dataset {

struct CapacityGoal {
  enum class Of : std::uint8_t {
    kWaiting,  // the share of an epoch's time in which training waits for the store, 0 to below 1
    kCost,     // of all that a run reads from the store, in the currency of its prices
  };
  Of of = Of::kWaiting;
  double at_most = 0;
  friend bool operator==(const CapacityGoal&, const CapacityGoal&) = default;
};

// "2%" or "0.02". kInvalidArgument says what is allowed.
Result<CapacityGoal> ParseWaitingGoal(std::string_view text);
// "12.5". kInvalidArgument says what is allowed.
Result<CapacityGoal> ParseCostGoal(std::string_view text);

}  // namespace optcache::dataset
