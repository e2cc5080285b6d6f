#pragma once

// The pictures of `optcache simulate --plot`. Pure.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "simulation/simulate.h"

namespace optcache::cli {

inline constexpr std::array kPlottedCapacities{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9};
inline constexpr std::array kPlottedBandwidths{.3, .4, .5, .6, .7, .8, .9, 1.0, 1.1, 1.2};

struct PlottedPolicy {
  std::string_view name;
  std::array<double, kPlottedCapacities.size()> hits_by_capacity{};
  std::array<double, 10> hits_by_tenth{};
  std::array<double, kPlottedBandwidths.size()> epoch_time_by_bandwidth{};
};

// Hit ratio over capacity, and, at `capacity`, over the epoch; epoch time over store bandwidth.
// SVG.
std::string DrawSimulation(const std::vector<PlottedPolicy>& policies, double capacity);

}  // namespace optcache::cli
