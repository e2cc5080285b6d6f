#include "cli/simulate/until_search.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cli/simulate/simulate_charts.h"
#include "cli/simulate/simulation_runner.h"

namespace optcache::cli {
namespace {

// For reads from `counted_from` on. To `draw` a curve, more capacities are measured.
Result<UntilReport::Line> SimulateUntil(const SimulateScene& scene, SimulationRunner& runner,
                                        simulation::PolicyKind policy, std::size_t counted_from,
                                        bool draw) {
  const simulation::Goal& goal = *scene.goal;
  std::vector<std::pair<double, simulation::PolicyResult>> results;
  const auto measure = [&](double capacity) -> Result<double> {
    simulation::CacheOptions cache = scene.cache;
    cache.capacity = capacity;
    ASSIGN_OR_RETURN(simulation::PolicyResult result, runner.Run(cache, policy));
    results.emplace_back(capacity, std::move(result));
    return simulation::ValueOf(goal, results.back().second);
  };
  UntilReport::Line line{.policy = policy, .found = {}, .result = {}};
  ASSIGN_OR_RETURN(line.found, simulation::FindLeastCapacity(measure, goal.at_most));
  std::vector<simulation::CapacityPoint>& measured = line.found.measured;
  for (const double capacity : kPlottedCapacities) {
    const bool known = std::ranges::find(measured, capacity,
                                         &simulation::CapacityPoint::capacity) != measured.end();
    if (!draw || known) continue;
    ASSIGN_OR_RETURN(const double value, measure(capacity));
    measured.push_back({.capacity = capacity, .value = value});
  }
  std::ranges::sort(measured, {}, &simulation::CapacityPoint::capacity);
  // Where more capacity can be worse, a point of the plot may reach the goal with less.
  const auto least = std::ranges::find_if(measured, [&](const simulation::CapacityPoint& point) {
    return simulation::Reaches(point.value, goal.at_most);
  });
  if (least != measured.end()) line.found.least = *least;
  const double shown = line.found.least ? line.found.least->capacity : 1;
  line.result =
      std::ranges::find(results, shown, [](const auto& each) { return each.first; })->second;
  line.store_reads = line.result.store_reads;
  if (counted_from > 0) {
    const auto reads = static_cast<double>(scene.run.reads.size() - counted_from);
    line.store_reads =
        static_cast<std::uint64_t>(std::llround((1 - line.result.hit_ratio) * reads));
  }
  return line;
}

// As whole ones where they are, as an epoch of all jobs may end within a read.
double EpochsBefore(const simulation::Reads& run, std::size_t read) {
  for (std::uint32_t epoch = 0; epoch < run.epochs && run.EndOfEpoch(epoch) <= read; ++epoch) {
    if (run.EndOfEpoch(epoch) == read) return epoch + 1;
  }
  return static_cast<double>(read) * run.epochs / static_cast<double>(run.reads.size());
}

}  // namespace

Result<UntilReport> SearchUntil(const SimulateScene& scene, bool draw) {
  UntilReport report{.goal = *scene.goal, .dataset_bytes = scene.cache.sizes.total(), .lines = {}};
  std::size_t counted_from = 0;
  if (scene.goal->of == simulation::Goal::Of::kWaiting) {
    report.store_bandwidth = scene.cache.stores.front().bandwidth;
    counted_from = scene.run.steady_from();
  }
  report.epochs_left_out = EpochsBefore(scene.run, counted_from);
  report.first_reads = simulation::FirstReads(scene.run, counted_from);
  const std::size_t runs = simulation::kMostMeasurements + (draw ? kPlottedCapacities.size() : 0);
  SimulationRunner runner(scene, scene.policies.size() * runs);
  for (const simulation::PolicyKind policy : scene.policies) {
    ASSIGN_OR_RETURN(UntilReport::Line line,
                     SimulateUntil(scene, runner, policy, counted_from, draw));
    report.lines.push_back(std::move(line));
  }
  return report;
}

}  // namespace optcache::cli
