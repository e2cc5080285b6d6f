#include "dataset/capacity_goal.h"

#include <optional>
#include <string>

#include "base/decimal.h"

namespace optcache::dataset {

Result<CapacityGoal> ParseWaitingGoal(std::string_view text) {
  std::string_view amount = text;
  const bool percent = amount.ends_with('%');
  if (percent) amount.remove_suffix(1);
  const std::optional<double> value = ParseDecimal(amount);
  const double share = value.value_or(-1) / (percent ? 100 : 1);
  if (share >= 0 && share < 1)
    return CapacityGoal{.of = CapacityGoal::Of::kWaiting, .at_most = share};
  return Error(
      Code::kInvalidArgument,
      "'" + std::string(text) + "', allowed: a share of the time, from 0 to below 1: 2% or 0.02");
}

Result<CapacityGoal> ParseCostGoal(std::string_view text) {
  const std::optional<double> value = ParseDecimal(text);
  if (value && *value >= 0) return CapacityGoal{.of = CapacityGoal::Of::kCost, .at_most = *value};
  return Error(Code::kInvalidArgument,
               "'" + std::string(text) + "', allowed: an amount of money, 0 or more: 12.5");
}

}  // namespace optcache::dataset
