// Runs every policy over the same reads, and finds least capacities where a goal is given.
//
// The scene (simulate_scene.h) has the reads once; each run gets it with another policy, capacity
// or store. A search (until_search.h) keeps every result, because the least capacity's figures are
// shown, too, and are not computed twice. With --plot more capacities are measured; one of these
// may turn out to be the least, since some policies get worse with more memory.

#include "cli/simulate/simulate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "cli/simulate/simulate_charts.h"
#include "cli/simulate/simulate_report.h"
#include "cli/simulate/simulate_scene.h"
#include "cli/simulate/simulate_until.h"
#include "cli/simulate/simulation_runner.h"
#include "cli/simulate/until_search.h"
#include "cli/terminal/print.h"
#include "cli/terminal/whole_number.h"

namespace optcache::cli {
namespace {

constexpr const char* kSimulateSummary =
    "Compare what cache policies read from the store, and how long epochs take with each";

constexpr const char* kSimulateMore =
    R"(Jobs read a dataset epoch after epoch, through a cache that holds a part of it. This command gives every policy the
same reads and prints what each policy costs. Ratios leave out the first epoch, in which every sample is new (with
--pass-length, the first epochs that make up a whole one; with --apart, they begin when each job has read what is new in
the first epoch that it begins). The number of store reads includes these reads. OF BOUND is 1.0 if no cache of this
size can read less.

  HITS   share of reads that some node held      LOCAL  held by the reader's own node
  PEER   fetched from another node, waited for   MOVED  sent to another node in the background

Policies:
  optimal       the plan that optcache carries out
  min           Belady's MIN, as in the textbook; min-forced: MIN without bypass
  opt4torch     the plan of OPT4TorchDataset. It counts samples instead of bytes. If sizes vary, it may hold a little
                more than the other policies, and read less than the bound
  nopfs         keeps what each node reads most often in the whole run, and never changes it
  pin           keeps what came first, and never evicts it (MinIO in CoorDL)
  lfu           evicts the least often used while held; lfu-for-ever: the least often used so far, held or not
  sieve, random, fifo, lru, none

Examples:
  Simulate one job on 4 nodes that together hold 30 % of the dataset:
    optcache simulate
  Simulate four jobs that share the cache, the last of them half as fast:
    optcache simulate --jobs 4 --rates 1,1,1,0.5
  Use the sizes of your files, and minimise the number of requests:
    optcache simulate --manifest images.manifest --objective Requests --policies optimal,pin,lru
  Simulate training that ends each epoch after a quarter of its batches:
    optcache simulate --pass-length 0.25 --epochs 80
  Simulate a store that delivers 70 % of what the GPUs could read, and draw pictures:
    optcache simulate --store-bandwidth 0.7 --plot simulation.svg
  Find the least capacity with which training waits 2 % of the time at most:
    optcache simulate --store-bandwidth 0.7 --until waiting=2%
  Find the least capacity with which the run costs 1.50 at most, with the sizes of your files:
    optcache simulate --manifest images.manifest --epochs 90 --price-per-request 0.0000004 --price-per-gib 0.02 --until cost=1.5
  Replay a recorded trace (an id a line, or libCacheSim's oracleGeneral):
    optcache simulate --nodes 1 --trace reads.txt
    optcache simulate --nodes 1 --trace-format oracleGeneral --trace w01.oracleGeneral.bin)";

Result<SimulateReport> SimulateAll(const SimulateScene& scene) {
  SimulateReport report{.bound = {},
                        .sizes_vary = !scene.cache.sizes.equal(),
                        .stores = scene.cache.stores,
                        .lines = {}};
  ASSIGN_OR_RETURN(report.bound, simulation::BoundOf(scene.run, scene.cache));
  SimulationRunner runner(scene, scene.policies.size());
  for (const simulation::PolicyKind policy : scene.policies) {
    ASSIGN_OR_RETURN(simulation::PolicyResult result, runner.Run(scene.cache, policy));
    report.lines.push_back({.policy = policy, .result = std::move(result)});
  }
  return report;
}

Status PlotSimulation(const SimulateFlags& flags, const SimulateScene& scene) {
  simulation::CacheOptions at_bandwidths = scene.cache;
  at_bandwidths.stores.clear();
  for (const double bandwidth : kPlottedBandwidths) {
    at_bandwidths.stores.push_back({.bandwidth = bandwidth,
                                    .latency = flags.store_latency,
                                    .staging_slots = flags.staging_slots});
  }
  std::vector<PlottedPolicy> plotted;
  SimulationRunner runner(scene, scene.policies.size() * (1 + kPlottedCapacities.size()));
  for (const simulation::PolicyKind policy : scene.policies) {
    PlottedPolicy& plot = plotted.emplace_back();
    plot.name = simulation::PolicyName(policy);
    ASSIGN_OR_RETURN(const auto by_bandwidth, runner.Run(at_bandwidths, policy));
    plot.hits_by_tenth = by_bandwidth.hit_ratio_by_tenth;
    std::copy(by_bandwidth.epoch_time.begin(), by_bandwidth.epoch_time.end(),
              plot.epoch_time_by_bandwidth.begin());
    for (std::size_t i = 0; i < kPlottedCapacities.size(); ++i) {
      simulation::CacheOptions cache = scene.cache;
      cache.capacity = kPlottedCapacities[i];
      cache.stores.clear();
      ASSIGN_OR_RETURN(const auto result, runner.Run(cache, policy));
      plot.hits_by_capacity[i] = result.hit_ratio;
    }
  }
  return WriteFileAtomically(flags.plot, DrawSimulation(plotted, scene.cache.capacity));
}

std::string FormatSimulation(const SimulateFlags& flags, const SimulateReport& report) {
  if (flags.output == "json") return ReportAsJson(report);
  if (flags.output == "csv") return ReportAsCsv(report);
  return ReportAsTable(report);
}

std::string FormatUntil(const SimulateFlags& flags, const UntilReport& report) {
  if (flags.output == "json") return UntilAsJson(report);
  if (flags.output == "csv") return UntilAsCsv(report);
  return UntilAsTable(report);
}

Status RunSimulateUntil(const SimulateFlags& flags, const SimulateScene& scene) {
  ASSIGN_OR_RETURN(const UntilReport report, SearchUntil(scene, !flags.plot.empty()));
  RETURN_IF_ERROR(Print(FormatUntil(flags, report)));
  return flags.plot.empty() ? OkStatus() : WriteFileAtomically(flags.plot, DrawUntil(report));
}

Status RunSimulate(const SimulateFlags& flags) {
  ASSIGN_OR_RETURN(const SimulateScene scene, MakeScene(flags));
  if (scene.goal) return RunSimulateUntil(flags, scene);
  ASSIGN_OR_RETURN(const SimulateReport report, SimulateAll(scene));
  RETURN_IF_ERROR(Print(FormatSimulation(flags, report)));
  return flags.plot.empty() ? OkStatus() : PlotSimulation(flags, scene);
}

void AddReadOptions(CLI::App& command, SimulateFlags& flags) {
  constexpr const char* kReads = "What is read";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group(kReads)->capture_default_str();
  };
  add("--workload", flags.workload,
      "Order of the reads: permutation (shuffled again each epoch), replacement, weighted "
      "(lognormal weights), half (a random half each epoch), mixture (30 % of the samples three "
      "times) or zipf");
  add("--zipf-exponent", flags.zipf_exponent, "Exponent of zipf, 0 to 10");
  add("--samples", flags.samples, "Number of samples in the dataset")
      ->check(WholeNumber<std::uint32_t>());
  add("--epochs", flags.epochs, "Number of epochs of the slowest job")
      ->check(WholeNumber<std::uint32_t>());
  add("--pass-length", flags.pass_length,
      "Part of each epoch's order that is read, for training that leaves its loop early; such a "
      "part then counts as an epoch");
  add("--seed", flags.seed, "Seed of the orders, the sizes and all other random numbers")
      ->check(WholeNumber<std::uint64_t>());
  add("--trace", flags.trace, "File of recorded reads to use instead; one job reads them once");
  add("--trace-format", flags.trace_format,
      "Format of the trace: ids (a number a line) or oracleGeneral")
      ->check(CLI::IsMember({"ids", "oracleGeneral"}));
  add("--sizes", flags.sizes, "Sizes of the samples: equal or lognormal")
      ->check(CLI::IsMember({"equal", "lognormal"}));
  add("--mean-bytes", flags.mean_bytes, "Mean size of the samples");
  add("--sigma", flags.sigma, "Standard deviation of the logarithm of the sizes, for lognormal");
  add("--manifest", flags.manifest,
      "Take the number and the sizes of the samples from this manifest");
}

void AddJobOptions(CLI::App& command, SimulateFlags& flags) {
  constexpr const char* kJobs = "Jobs that read";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group(kJobs)->capture_default_str();
  };
  add("--jobs", flags.jobs, "Number of jobs that share the cache, each with an order of its own")
      ->check(WholeNumber<std::uint32_t>());
  add("--rates", flags.rates, "Speeds of the jobs relative to each other, separated by commas")
      ->delimiter(',')
      ->default_str("");
  add("--apart", flags.apart, "Distance of each job ahead of the next one, in epochs");
  command.add_flag("--one-seed", flags.one_seed, "Let all jobs read in the same order")
      ->group(kJobs);
  add("--drift", flags.drift,
      "Standard deviation of the speeds over time, as a share of the speed");
  add("--nodes", flags.nodes, "Number of cache nodes")->check(WholeNumber<std::uint32_t>());
  add("--ranks", flags.ranks,
      "Number of ranks of each job, which are spread over the nodes in turn; 0: one for each node")
      ->check(WholeNumber<std::uint32_t>());
}

// "30%" as "30e-2".
std::string PercentAsShare(std::string text) {
  if (!text.ends_with('%')) return text;
  text.replace(text.size() - 1, 1, "e-2");
  return text;
}

void AddCacheOptions(CLI::App& command, SimulateFlags& flags) {
  constexpr const char* kCache = "Cache and store";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group(kCache)->capture_default_str();
  };
  add("--capacity", flags.capacity,
      "Capacity of all nodes together, as a share of the dataset: 0.3 or 30%")
      ->transform(PercentAsShare);
  add("--objective", flags.objective,
      "What the policy optimal minimises: Bytes, or Requests at equal bytes (for one job that "
      "shuffles)")
      ->check(CLI::IsMember({"Bytes", "Requests"}));
  add("--lookahead", flags.lookahead,
      "How far min and min-forced look ahead, in epochs; 0: no limit");
  add("--store-bandwidth", flags.store_bandwidth,
      "Bandwidth of the store, as a share of what the jobs could read without waiting; several are "
      "separated by commas. Adds the columns TIME")
      ->delimiter(',')
      ->default_str("");
  add("--store-latency", flags.store_latency,
      "Time until the first byte, as the number of reads that all jobs together could make "
      "meanwhile");
  add("--staging-slots", flags.staging_slots,
      "Number of samples that are requested ahead, beside the cache")
      ->check(WholeNumber<std::uint32_t>());
}

void AddGoalOptions(CLI::App& command, SimulateFlags& flags) {
  constexpr const char* kGoal = "How large a cache";
  command
      .add_option("--until", flags.until,
                  "Find the least capacity that reaches a goal, instead of comparing at one: "
                  "waiting=2% of the time of an epoch after the first, with one --store-bandwidth, "
                  "or cost=AMOUNT of the whole run, with prices. Then --policies is optimal by "
                  "default")
      ->group(kGoal)
      ->excludes("--capacity");
  command
      .add_option("--price-per-request", flags.price_per_request,
                  "Price of a request to the store, as in spec.cost of a Dataset")
      ->group(kGoal);
  command
      .add_option("--price-per-gib", flags.price_per_gib,
                  "Price of a GiB that comes from the store, in the same currency")
      ->group(kGoal);
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand("simulate", kSimulateSummary);
  command->footer(kSimulateMore);
  // Shared by the options, which write it, and the callback, which reads it: both live in `app`.
  const auto flags = std::make_shared<SimulateFlags>();
  AddReadOptions(*command, *flags);
  AddJobOptions(*command, *flags);
  AddCacheOptions(*command, *flags);
  AddGoalOptions(*command, *flags);
  command
      ->add_option("--policies", flags->policies,
                   "Policies to compare, separated by commas; default: all")
      ->delimiter(',');
  command->add_option("--output", flags->output, "Format of the output: table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  command->add_option("--plot", flags->plot,
                      "Write an SVG file with three pictures: hit ratio over capacity, hit ratio "
                      "over the epoch, and epoch time over store bandwidth. With --until: one, "
                      "waiting or cost over capacity, with the least capacity marked");
  command->callback([flags, &chosen] { chosen = [flags] { return RunSimulate(*flags); }; });
}

}  // namespace optcache::cli
