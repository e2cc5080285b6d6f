#include "simulation/least_capacity.h"

#include <algorithm>
#include <cstddef>

namespace optcache::simulation {
namespace {

// What is lost when many decimal fractions are added.
constexpr double kRounding = 1e-9;  // as a share
constexpr double kLeastRounding = 1e-12;

}  // namespace

double ValueOf(const Goal& goal, const PolicyResult& result) {
  if (goal.of == Goal::Of::kWaiting) return std::max(0.0, 1 - 1 / result.epoch_time.at(0));
  const dataset::StoreTraffic traffic{.requests = static_cast<std::int64_t>(result.store_reads),
                                      .bytes = static_cast<std::int64_t>(result.store_bytes)};
  return dataset::CostOf(goal.price, traffic).value_or(0);
}

bool Reaches(double value, double at_most) {
  return value <= at_most * (1 + kRounding) + kLeastRounding;
}

Result<LeastCapacity> FindLeastCapacity(const MeasureAt& measure, double at_most) {
  LeastCapacity found;
  const auto reached_at = [&](std::uint32_t step) -> Result<bool> {
    const double capacity = static_cast<double>(step) / kCapacitySteps;
    ASSIGN_OR_RETURN(const double value, measure(capacity));
    found.measured.push_back({.capacity = capacity, .value = value});
    return Reaches(value, at_most);
  };
  std::uint32_t enough = kCapacitySteps;
  ASSIGN_OR_RETURN(const bool ever, reached_at(enough));
  if (!ever) return found;
  found.least = found.measured.back();

  std::uint32_t too_little = 0;
  ASSIGN_OR_RETURN(const bool always, reached_at(too_little));
  if (always) {
    found.least = found.measured.back();
    enough = too_little;
  }
  // `enough` reaches the goal and is `least`, `too_little` does not reach it.
  while (enough - too_little > 1) {
    const std::uint32_t middle = too_little + (enough - too_little) / 2;
    ASSIGN_OR_RETURN(const bool reached, reached_at(middle));
    if (reached) found.least = found.measured.back();
    (reached ? enough : too_little) = middle;
  }
  std::ranges::sort(found.measured, {}, &CapacityPoint::capacity);
  return found;
}

std::uint64_t FirstReads(const Reads& run, std::size_t from) {
  std::vector<bool> was_read(run.sample_count);
  std::uint64_t first_reads = 0;
  for (std::size_t t = 0; t < run.reads.size(); ++t) {
    if (was_read[run.reads[t].sample]) continue;
    was_read[run.reads[t].sample] = true;
    first_reads += std::uint64_t{t >= from};
  }
  return first_reads;
}

}  // namespace optcache::simulation
