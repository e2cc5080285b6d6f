#pragma once

// The least capacity that reaches a goal: how large a cache must be, and not what one is worth.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"
#include "dataset/store_price.h"
#include "simulation/reads.h"
#include "simulation/simulate.h"

namespace optcache::simulation {

// Capacities are tried in steps of a thousandth of the dataset.
inline constexpr std::uint32_t kCapacitySteps = 1000;
// `FindLeastCapacity` measures at most this often: the whole dataset, nothing, and ten halvings.
inline constexpr std::uint32_t kMostMeasurements = 12;

// What is to stay at or below a limit.
struct Goal {
  enum class Of : std::uint8_t {
    kWaiting,  // the share of an epoch's time in which training waits, after the cold epochs
    kCost,     // of all that is read from the store in the whole run
  };
  Of of = Of::kWaiting;
  double at_most = 0;
  dataset::StorePrice price;  // of kCost
};

// Of kWaiting: with the first of the result's stores, of which there must be one.
double ValueOf(const Goal& goal, const PolicyResult& result);

// `value` is at most `at_most`, but for what is lost when decimal fractions are added.
bool Reaches(double value, double at_most);

struct CapacityPoint {
  double capacity = 0;  // share of the dataset, 0 to 1
  double value = 0;
};

struct LeastCapacity {
  // Not set: not even a capacity of 1 reaches the goal, and `measured.back()` says how near it
  // comes.
  std::optional<CapacityPoint> least;
  std::vector<CapacityPoint> measured;  // by capacity; the last is at 1
};

// `measure` is asked for the value at some capacities, kMostMeasurements times at most; its first
// error ends the search and is returned.
//
// The least point reaches the goal, and the one a step below does not, or there is none. Where the
// values never rise with the capacity, no smaller capacity reaches it. Where they do rise
// somewhere, one may.
using MeasureAt = std::function<Result<double>(double capacity)>;
Result<LeastCapacity> FindLeastCapacity(const MeasureAt& measure, double at_most);

// How many of the run's reads, from read `from` on, are the first of their sample in the run. No
// cache spares these.
std::uint64_t FirstReads(const Reads& run, std::size_t from);

}  // namespace optcache::simulation
