// Turns a running cache into a scene to simulate, and what was found into text and JSON.
//
// The idea: each job is simulated by its own recipe, from the epoch and the place where it is, and
// beside other jobs at the proportion of its speed. Time has no unit here: the store is known by
// the share of what the jobs can read (ShareOf), which is one rate divided by the other. A rate
// that nothing has measured is refused with the flag that gives it, and each number that is shown
// says from what it comes.

#include "cli/plan/suggestion.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/explain/training_limit.h"
#include "cli/terminal/value_text.h"
#include "sampler/order_source.h"
#include "simulation/reads.h"

namespace optcache::cli {
namespace {

using simulation::PolicyKind;

std::string RateText(double bytes_per_second) {
  return FormatBytes(ToWhole<ByteCount>(bytes_per_second)) + "/s";
}

Result<PolicyKind> PolicyOfCache(const RunningCache& cache) {
  switch (cache.retention) {
    case coordination::Retention::kOptimal:
      return PolicyKind::kOptimal;
    case coordination::Retention::kPin:
      return PolicyKind::kPin;
    case coordination::Retention::kLru:
      return PolicyKind::kLru;
    case coordination::Retention::kNone:
      break;
  }
  return Error(Code::kInvalidArgument,
               "the CachePlan of " + cache.dataset +
                   " has retention: None, so no capacity changes what is read: set another one");
}

// Of jobs beside each other, only their speeds' proportions count.
Result<simulation::Pace> PaceOfJobs(const RunningCache& cache, std::uint32_t epochs) {
  simulation::Pace pace{.jobs = {}, .epochs = epochs, .nodes = cache.nodes};
  for (const RunningJob& job : cache.jobs) {
    if (cache.jobs.size() > 1 && !(job.rate > 0)) {
      return Error(Code::kUnavailable,
                   "the speed of " + job.name + " is not measured yet: ask again in a minute");
    }
    const std::uint64_t whole = sampler::PassLength(job.recipe);
    const std::uint64_t length =
        job.length == 0 ? whole : std::min<std::uint64_t>(job.length, whole);
    const double ahead =
        length == 0 ? 0 : static_cast<double>(job.position % length) / static_cast<double>(length);
    pace.jobs.push_back({.rate = cache.jobs.size() > 1 ? job.rate : 1,
                         .ahead = ahead,
                         .ranks = job.recipe.world,
                         .stops_at = static_cast<Position>(length)});
  }
  return pace;
}

Result<simulation::Reads> ReadsOfJobs(const RunningCache& cache, std::uint32_t epochs) {
  ASSIGN_OR_RETURN(const simulation::Pace pace, PaceOfJobs(cache, epochs));
  std::vector<sampler::OrderSource> orders;
  for (const RunningJob& job : cache.jobs) {
    ASSIGN_OR_RETURN(sampler::OrderSource order, sampler::OrderSource::Make(job.recipe));
    orders.push_back(std::move(order));
  }
  return simulation::MakeReads(
      static_cast<std::uint32_t>(cache.samples), pace, [&](std::uint32_t job, PassNumber pass) {
        const RunningJob& running = cache.jobs[job];
        return orders[job].PassOrder(running.epoch + std::uint64_t{running.epoch_step} * pass);
      });
}

std::string ValueOfGoal(const Suggestion& suggestion, double value) {
  return suggestion.report.goal.of == simulation::Goal::Of::kWaiting
             ? "training waits " + PercentText(value) + " of the time"
             : "the run costs " + dataset::FormatMoney(value);
}

double CapacityShare(const RunningCache& cache) {
  return std::min(1.0, static_cast<double>(cache.capacity) / static_cast<double>(cache.bytes));
}

}  // namespace

MeasuredRates RatesBetween(const PagesBySidecar& first, const PagesBySidecar& second,
                           double seconds, const std::string& dataset) {
  // A sidecar does not know its store's bandwidth for a moment while it measures it again.
  constexpr const char* kBandwidth = "optcache_store_bandwidth_bytes";
  constexpr const char* kRead = "optcache_client_sample_bytes_total";
  MeasuredRates rates;
  double first_store = 0;
  double second_store = 0;
  for (const auto& [sidecar, after] : second) {
    const auto found = first.find(sidecar);
    const double read = SumOf(after, kRead, "dataset", dataset);
    if (found == first.end() || read == 0) continue;
    const std::vector<MetricSample>& before = found->second;
    first_store += SumOf(before, kBandwidth, "dataset", dataset);
    second_store += SumOf(after, kBandwidth, "dataset", dataset);
    rates.jobs += std::max(0.0, (read - SumOf(before, kRead, "dataset", dataset)) / seconds);
    rates.waited = std::max(rates.waited,
                            TrainingWait({.before = before, .after = after, .seconds = seconds}));
  }
  rates.store = std::max(first_store, second_store);
  return rates;
}

Result<StoreShare> ShareOf(double store_rate, double job_rate,
                           const std::optional<MeasuredRates>& measured) {
  const auto refuse = [](std::string why) { return Error(Code::kInvalidArgument, std::move(why)); };
  std::string store_basis = "as given";
  if (store_rate <= 0) {
    store_rate = measured ? measured->store : 0;
    store_basis = "the sum of what each sidecar has measured";
  }
  if (!(store_rate > 0)) {
    return refuse(
        "no sidecar has measured what the store delivers: they do while jobs wait for it. Set "
        "--store-rate, for example 500Mi (a second, to all jobs together)");
  }
  std::string job_basis = "as given";
  if (job_rate <= 0) {
    if (!measured || !(measured->jobs > 0)) {
      return refuse(
          "what the jobs read is not measured: none of them has read meanwhile. Set --job-rate, "
          "for example 800Mi (a second, of all jobs together when they never wait)");
    }
    if (measured->waited > kMostWaiting) {
      return refuse(fmt::format(
          "the jobs wait for samples, up to {} of the time, so how fast they read when they never "
          "wait is not known. Measure it with `optcache headspace`, and set --job-rate, for "
          "example 800Mi (a second, of all jobs together)",
          PercentText(std::min(measured->waited, 1.0))));
    }
    job_rate = measured->jobs / (1 - measured->waited);
    job_basis = fmt::format("measured while they waited {} of the time at most",
                            PercentText(measured->waited));
  }
  return StoreShare{
      .bandwidth = store_rate / job_rate,
      .basis = fmt::format("The store delivers {} ({}); the jobs read {} if they never wait ({}).",
                           RateText(store_rate), store_basis, RateText(job_rate), job_basis)};
}

Result<plan::Sizes> MeanSizes(const RunningCache& cache) {
  const ByteCount mean = std::max<ByteCount>(cache.bytes / cache.samples, 1);
  if (mean > std::numeric_limits<std::uint32_t>::max()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{}: a sample has {} bytes in the mean, 4 GiB at most are planned for",
                             cache.dataset, mean));
  }
  return plan::Sizes::Equal(static_cast<std::uint32_t>(cache.samples),
                            static_cast<std::uint32_t>(mean));
}

Result<SimulateScene> SceneOf(const RunningCache& cache, plan::Sizes sizes,
                              const simulation::Goal& goal, std::uint32_t epochs,
                              const StoreShare& store) {
  SimulateScene scene;
  ASSIGN_OR_RETURN(const PolicyKind policy, PolicyOfCache(cache));
  scene.policies = {policy};
  ASSIGN_OR_RETURN(scene.run, ReadsOfJobs(cache, epochs));
  scene.cache.sizes = std::move(sizes);
  scene.cache.capacity = CapacityShare(cache);
  scene.cache.objective = cache.objective;
  if (goal.of == simulation::Goal::Of::kWaiting)
    scene.cache.stores = {{.bandwidth = store.bandwidth}};
  scene.goal = goal;
  return scene;
}

std::optional<std::string> SuggestedCapacity(const Suggestion& suggestion) {
  const auto& least = suggestion.report.lines.front().found.least;
  if (!least || least->capacity <= 0) return std::nullopt;
  return fmt::format("{:.1f}%", least->capacity * 100);
}

std::optional<std::string> WhyNotApply(const Suggestion& suggestion) {
  const RunningCache& cache = suggestion.cache;
  const auto& least = suggestion.report.lines.front().found.least;
  if (!least) return std::nullopt;
  const auto bytes = ToWhole<ByteCount>(least->capacity * static_cast<double>(cache.bytes));
  if (bytes <= cache.capacity || bytes > cache.maximum) return std::nullopt;
  return fmt::format(
      "the nodes' memory is the limit: {} asks for {}, and they grant {}. Add memory or nodes, as "
      "its cache.capacity is large enough",
      cache.dataset, FormatBytes(cache.maximum), FormatBytes(cache.capacity));
}

std::string SuggestionAsText(const Suggestion& suggestion) {
  const RunningCache& cache = suggestion.cache;
  std::string text = UntilAsTable(suggestion.report);
  text +=
      fmt::format("Now: a capacity of {} ({}), with which {}.\n", PercentText(CapacityShare(cache)),
                  FormatBytes(cache.capacity), ValueOfGoal(suggestion, suggestion.now_value));
  text += fmt::format(
      "Simulated: {} epochs of {} that read{} {} now, in {} order, from where {} now, on {} that "
      "begin{} empty.\n",
      suggestion.epochs,
      cache.jobs.size() == 1 ? "the job" : fmt::format("the {} jobs", cache.jobs.size()),
      cache.jobs.size() == 1 ? "s" : "", cache.dataset, cache.jobs.size() == 1 ? "its" : "their",
      cache.jobs.size() == 1 ? "it is" : "they are",
      cache.nodes == 1 ? "a node" : fmt::format("{} nodes", cache.nodes),
      cache.nodes == 1 ? "s" : "");
  text += "Sizes: " + suggestion.sizes + "\n";
  if (!suggestion.rates.empty()) text += "Rates: " + suggestion.rates + "\n";
  return text;
}

std::string SuggestionAsJson(const Suggestion& suggestion) {
  const RunningCache& cache = suggestion.cache;
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(UntilAsJson(suggestion.report));
  json["dataset"] = cache.dataset;
  const auto capacity = SuggestedCapacity(suggestion);
  json["suggested"] = capacity ? nlohmann::ordered_json(*capacity) : nlohmann::ordered_json();
  const bool waiting = suggestion.report.goal.of == simulation::Goal::Of::kWaiting;
  json["now"] = {{"capacity", CapacityShare(cache)},
                 {"capacityBytes", cache.capacity},
                 {waiting ? "waiting" : "cost", suggestion.now_value}};
  json["epochs"] = suggestion.epochs;
  json["nodes"] = cache.nodes;
  json["jobs"] = nlohmann::ordered_json::array();
  for (const RunningJob& job : cache.jobs)
    json["jobs"].push_back({{"name", job.name}, {"rate", job.rate}, {"epoch", job.epoch}});
  json["sizes"] = suggestion.sizes;
  json["rates"] = suggestion.rates;
  return json.dump(2) + "\n";
}

}  // namespace optcache::cli
