#pragma once

// The least capacity for the jobs that read a dataset now: what is simulated of them, by which
// rates, and what is said of it. Pure.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/local/metrics_text.h"
#include "cli/local/running_cache.h"
#include "cli/simulate/simulate_scene.h"
#include "cli/simulate/simulate_until.h"

namespace optcache::cli {

// Jobs that wait longer than this do not show how fast they read when they never wait.
inline constexpr double kMostWaiting = 0.1;

// Bytes a second, of a dataset.
struct MeasuredRates {
  double store = 0;   // what the store delivers to all sidecars; 0: none has measured it
  double jobs = 0;    // what the jobs read
  double waited = 0;  // the share of the time in which training waited, at most
  friend bool operator==(const MeasuredRates&, const MeasuredRates&) = default;
};

// What the sidecars say, by the pod or address of each.
using PagesBySidecar = std::map<std::string, std::vector<MetricSample>>;

// From the pages of all sidecars, read twice, `seconds` apart. One that is missing in either look,
// or has not served the dataset, does not count.
MeasuredRates RatesBetween(const PagesBySidecar& first, const PagesBySidecar& second,
                           double seconds, const std::string& dataset);

// What the store delivers, as a share of what the jobs read when they never wait.
struct StoreShare {
  double bandwidth = 0;
  std::string basis;  // a sentence: where it comes from
};

// `store_rate` and `job_rate` in bytes a second count more than what is measured; 0: not given.
// kInvalidArgument: one of them is neither given nor measured, and says how to get it.
Result<StoreShare> ShareOf(double store_rate, double job_rate,
                           const std::optional<MeasuredRates>& measured);

// Of all samples, where no manifest is known. kInvalidArgument: they have 4 GiB or more each.
Result<plan::Sizes> MeanSizes(const RunningCache& cache);

// The jobs' own orders and speeds, from where they are, on nodes that begin empty.
// kInvalidArgument: they cannot be simulated; kUnavailable: a speed is not measured yet.
Result<SimulateScene> SceneOf(const RunningCache& cache, plan::Sizes sizes,
                              const simulation::Goal& goal, std::uint32_t epochs,
                              const StoreShare& store);

struct Suggestion {
  RunningCache cache;
  UntilReport report;        // of one policy
  double now_value = 0;      // waiting or cost, at the capacity that there is now
  std::uint32_t epochs = 0;  // that were simulated
  std::string sizes;         // a sentence: where they come from
  std::string rates;         // the same; empty: they do not count for the goal
};

// As `cache.capacity` of a Dataset: "28.6%". Nullopt: the goal is not reached, or without a cache.
std::optional<std::string> SuggestedCapacity(const Suggestion& suggestion);

// A sentence: the Dataset asks for that capacity already, and the nodes do not grant it, so writing
// it would give nothing. Nullopt: it may be written.
std::optional<std::string> WhyNotApply(const Suggestion& suggestion);

std::string SuggestionAsText(const Suggestion& suggestion);
// As UntilAsJson, with what it was made from.
std::string SuggestionAsJson(const Suggestion& suggestion);

}  // namespace optcache::cli
