#pragma once

// Dividing among sidecars what may be asked of one store. Pure.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace optcache::coordination {

// What may be asked of a store in a second. 0: as much as it carries.
struct StoreLimits {
  double requests = 0;
  double bytes = 0;
  friend bool operator==(const StoreLimits&, const StoreLimits&) = default;
};

// What some sidecars want of one of these rates.
struct RateDemand {
  std::uint32_t askers = 0;     // that have what they want
  double wanted = 0;            // by those together, a second
  std::uint32_t held_back = 0;  // beside those: sidecars that would take more than they have
  friend bool operator==(const RateDemand&, const RateDemand&) = default;
};

inline double SidecarsOf(const RateDemand& demand) {
  return static_cast<double>(demand.askers) + static_cast<double>(demand.held_back);
}

// Of the limit, in equal parts to all that ask, beyond what each wants: so one that has asked for
// nothing can begin.
inline constexpr double kReservedShare = 0.1;

// Divides `limit` by max-min fairness: of each demand, for its sidecars together. Of all `n`
// sidecars none gets less than the `n`th part of the limit or what it wants, of which in a demand
// each wants the mean. What is left goes to those that are held back in equal parts; if there are
// none, to all. The shares are never more than `limit` together, and all of it if anybody asks.
std::vector<double> ShareRate(double limit, std::span<const RateDemand> demands);

// The same for the values of a map: `demand_of(asker)` is what one wants, and `take(asker, share)`
// gives it its share.
template <typename Askers, typename DemandOf, typename Take>
void ShareRateAmong(double limit, Askers& askers, DemandOf demand_of, Take take) {
  std::vector<RateDemand> demands;
  demands.reserve(askers.size());
  for (const auto& [_, asker] : askers)
    demands.push_back(demand_of(asker));
  const std::vector<double> shares = ShareRate(limit, demands);
  std::size_t i = 0;
  for (auto& [_, asker] : askers)
    take(asker, shares[i++]);
}

}  // namespace optcache::coordination
