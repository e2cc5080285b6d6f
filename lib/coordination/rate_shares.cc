#include "coordination/rate_shares.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace optcache::coordination {
namespace {

// Sidecars that want as much as one another.
struct Claim {
  std::size_t demand = 0;
  double sidecars = 0;
  double each = 0;
};

std::vector<Claim> ClaimsOf(double limit, std::span<const RateDemand> demands, double sidecars) {
  const double reserved = limit * kReservedShare / sidecars;
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    const RateDemand& demand = demands[i];
    if (demand.askers > 0) {
      const double each = std::max(demand.wanted, 0.0) / demand.askers;
      claims.push_back(
          {.demand = i, .sidecars = static_cast<double>(demand.askers), .each = each + reserved});
    }
    if (demand.held_back > 0) {
      claims.push_back({.demand = i,
                        .sidecars = static_cast<double>(demand.held_back),
                        .each = std::numeric_limits<double>::infinity()});
    }
  }
  std::ranges::stable_sort(claims, {}, &Claim::each);
  return claims;
}

}  // namespace

// Those that want least first: each gets what it wants, or as much as all that follow.
std::vector<double> ShareRate(double limit, std::span<const RateDemand> demands) {
  std::vector<double> shares(demands.size(), 0.0);
  double sidecars = 0;
  for (const RateDemand& demand : demands)
    sidecars += SidecarsOf(demand);
  if (sidecars == 0 || limit <= 0) return shares;
  double left = limit;
  double waiting = sidecars;
  for (const Claim& claim : ClaimsOf(limit, demands, sidecars)) {
    const double share = std::min(claim.each, left / waiting) * claim.sidecars;
    shares[claim.demand] += share;
    left = std::max(left - share, 0.0);
    waiting -= claim.sidecars;
  }
  for (std::size_t i = 0; i < demands.size(); ++i)  // nothing, if one is held back
    shares[i] += left * SidecarsOf(demands[i]) / sidecars;
  return shares;
}

}  // namespace optcache::coordination
