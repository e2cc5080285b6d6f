// Reads what a cache says of a dataset and its jobs, from a coordinator's status or from resources.
//
// The idea: both ways end in the same RunningCache, and CheckRunning refuses what cannot be
// simulated: no job, no samples, no node, or a job that reads another list of samples. A job whose
// order is not known ahead is refused, too, as it has no recipe. Numbers of resources come from
// outside and are cut to what is possible; JobOfStream and JobOfJson are the same, field for field.

#include "cli/local/running_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "api/enumerations.h"
#include "base/decimal.h"
#include "cli/local/dataset_name.h"
#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

using coordination::DatasetStatus;
using coordination::StreamStatus;
using kube::CountAt;
using kube::Json;

Result<RunningJob> MakeJob(const std::string& name, const std::string& recipe) {
  if (recipe.empty()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("the order of {} is not known ahead, or its recipe is too long to be "
                             "shown, so its reads cannot be simulated: use `optcache simulate "
                             "--until` with a workload like it",
                             name));
  }
  RunningJob job{.name = name, .recipe = {}};
  auto parsed = sampler::ParseRecipe(recipe);
  if (!parsed)
    return std::unexpected(std::move(parsed).error().WithContext("the order of " + name));
  job.recipe = *std::move(parsed);
  return job;
}

Result<RunningJob> JobOfStream(const StreamStatus& stream) {
  ASSIGN_OR_RETURN(RunningJob job, MakeJob(stream.name, stream.recipe));
  job.epoch = stream.epoch;
  job.epoch_step = stream.epoch_step;
  job.position = stream.position;
  job.length = stream.length;
  job.rate = stream.rate;
  return job;
}

Result<RunningJob> JobOfJson(const Json& json) {
  const std::string name = kube::TextAt(json, "/name");
  ASSIGN_OR_RETURN(RunningJob job, MakeJob(name, kube::TextAt(json, "/recipe")));
  job.epoch = CountAt(json, "/epoch");
  job.epoch_step = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      CountAt(json, "/epochStep"), std::numeric_limits<std::uint32_t>::max()));
  job.position = static_cast<Position>(CountAt(json, "/position"));
  job.length = static_cast<Position>(CountAt(json, "/length"));
  job.rate = std::max(ParseDecimal(kube::TextAt(json, "/rate")).value_or(0), 0.0);
  return job;
}

Status ReadsAnotherList(const std::string& job, const std::string& dataset) {
  return {Code::kInvalidArgument,
          fmt::format("{} reads another list of samples than {} has now: start it again", job,
                      dataset)};
}

// Who has gone, or was never there, does not read.
bool IsThere(const StreamStatus& stream) {
  return stream.ranks > stream.ranks_lost;
}

Status CheckRunning(const RunningCache& cache) {
  if (cache.jobs.empty()) {
    return {Code::kNotFound, fmt::format("no training job reads {} now: start the jobs first, or "
                                         "describe them to `optcache simulate --until`",
                                         cache.dataset)};
  }
  if (cache.samples == 0 || cache.bytes == 0)
    return {Code::kUnavailable, cache.dataset + " is not indexed yet: ask again later"};
  if (cache.nodes == 0)
    return {Code::kUnavailable, cache.dataset + " is on no node yet: ask again later"};
  for (const RunningJob& job : cache.jobs) {
    if (sampler::SamplesNeeded(job.recipe) <= cache.samples) continue;
    return ReadsAnotherList(job.name, cache.dataset);
  }
  return OkStatus();
}

Result<const DatasetStatus*> NamedOrOnly(const coordination::ClusterStatus& status,
                                         const std::string& name) {
  if (!name.empty()) return FindDataset(status.datasets, name, &DatasetStatus::name);
  if (status.datasets.size() == 1) return &status.datasets.front();
  std::string names;
  for (const DatasetStatus& dataset : status.datasets)
    names += (names.empty() ? "" : ", ") + dataset.name;
  return Error(Code::kInvalidArgument, "name one of the datasets that are there: " + names);
}

// A number, or a text with one.
std::string PriceText(const Json& dataset, const char* pointer) {
  const Json& price = kube::Find(dataset, pointer);
  return price.is_number() ? price.dump() : kube::TextAt(dataset, pointer);
}

}  // namespace

Result<RunningCache> RunningCacheOf(const coordination::ClusterStatus& status,
                                    const std::string& name) {
  ASSIGN_OR_RETURN(const DatasetStatus* const dataset, NamedOrOnly(status, name));
  RunningCache cache{.dataset = dataset->name,
                     .manifest_digest = dataset->manifest_digest,
                     .samples = dataset->total_samples,
                     .bytes = dataset->total_bytes,
                     .capacity = dataset->capacity,
                     .maximum = 0,
                     .nodes = static_cast<std::uint32_t>(dataset->nodes.size()),
                     .retention = dataset->retention,
                     .objective = dataset->objective,
                     .jobs = {},
                     .price = {}};
  for (const StreamStatus& stream : dataset->streams) {
    if (!IsThere(stream)) continue;
    ASSIGN_OR_RETURN(RunningJob job, JobOfStream(stream));
    cache.jobs.push_back(std::move(job));
  }
  for (const DatasetStatus& earlier : status.retiring) {
    if (earlier.name != dataset->name) continue;
    for (const StreamStatus& stream : earlier.streams) {
      if (IsThere(stream)) return std::unexpected(ReadsAnotherList(stream.name, cache.dataset));
    }
  }
  RETURN_IF_ERROR(CheckRunning(cache));
  return cache;
}

Result<RunningCache> RunningCacheOf(const Json& plan, const Json& resource) {
  RunningCache cache{
      .dataset = kube::KeyOf(resource).ToString(),
      .manifest_digest = kube::TextAt(resource, "/status/manifestDigest"),
      .samples = std::min<std::uint64_t>(CountAt(resource, "/status/samples"), kNoSample),
      .bytes = CountAt(resource, "/status/bytes"),
      .capacity = CountAt(resource, "/status/capacity/granted"),
      .maximum = CountAt(resource, "/status/capacity/maximum"),
      .nodes = static_cast<std::uint32_t>(kube::Items(resource, "/status/nodes").size()),
      // What an API server has checked; of something else, the default.
      .retention = api::ValueIn(api::kRetentions, kube::TextAt(plan, "/spec/retention"))
                       .value_or(api::Retention::kOptimal),
      .objective = api::ValueIn(api::kObjectives, kube::TextAt(plan, "/spec/objective"))
                       .value_or(plan::Objective::kBytes),
      .jobs = {},
      .price = {}};
  for (const Json& json : kube::Items(plan, "/status/jobs")) {
    if (CountAt(json, "/ranks") == 0) continue;
    if (kube::Find(json, "/earlierManifest") == true)
      return std::unexpected(ReadsAnotherList(kube::TextAt(json, "/name"), cache.dataset));
    ASSIGN_OR_RETURN(RunningJob job, JobOfJson(json));
    cache.jobs.push_back(std::move(job));
  }
  const auto price = [&](const char* pointer) {
    return dataset::ParsePrice(PriceText(resource, pointer)).value_or(0);
  };
  cache.price = {.per_request = price("/spec/cost/perRequest"),
                 .per_gib = price("/spec/cost/perGiB")};
  const std::string waiting = kube::TextAt(plan, "/spec/goal/waiting");
  const std::string cost = kube::TextAt(plan, "/spec/goal/cost");
  if (!waiting.empty()) {
    ASSIGN_OR_RETURN(cache.goal, dataset::ParseWaitingGoal(waiting));
  } else if (!cost.empty()) {
    ASSIGN_OR_RETURN(cache.goal, dataset::ParseCostGoal(cost));
  }
  RETURN_IF_ERROR(CheckRunning(cache));
  return cache;
}

}  // namespace optcache::cli
