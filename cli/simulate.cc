#include "cli/simulate.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/files.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "cli/simulate_charts.h"
#include "cli/simulate_report.h"
#include "cli/simulate_scene.h"
#include "cli/whole_number.h"

namespace optcache::cli {
namespace {

constexpr const char* kSimulateSummary =
    "What each cache policy would read from the store, and how long epochs would take";

constexpr const char* kSimulateMore =
    R"(Jobs read a dataset epoch after epoch, through a cache that holds a part of it. This command lets every policy
see the same reads and says what it costs. Ratios leave out the first epoch, in which all is new (with --pass-length
as many as make a whole one); store reads count it. OF BOUND: 1.0 is as little as any cache of this size can read.

  HITS   share of reads that some node held      LOCAL  held by the reader's own node
  PEER   fetched from another node, waited for   MOVED  sent to another node in the background

Policies:
  optimal       the plan that optcache carries out
  min           Belady's MIN, by the textbook; min-forced: the same without bypass
  opt4torch     the plan of OPT4TorchDataset; it counts samples, by their mean size, so that where sizes vary
                it may hold a little more than the others, and read less than the bound
  nopfs         what each node reads most often in the whole run, never changed
  pin           what came first, never evicted (MinIO in CoorDL)
  lfu           least often used while held; lfu-for-ever: least often used at all
  sieve, random, fifo, lru, none

Examples:
  One job on 4 nodes that together hold 30 % of the dataset:
    optcache simulate
  Four jobs that share the cache, the last one half as fast:
    optcache simulate --jobs 4 --rates 1,1,1,0.5
  Your files, where each request costs: keep the smallest first:
    optcache simulate --manifest images.manifest --objective Requests --policies optimal,pin,lru
  Training that ends each epoch after a quarter of its batches:
    optcache simulate --pass-length 0.25 --epochs 80
  A store that delivers 70 % of what the GPUs could read; pictures of it all:
    optcache simulate --store-bandwidth 0.7 --plot simulation.svg
  A recorded trace (an id a line, or libCacheSim's oracleGeneral):
    optcache simulate --nodes 1 --trace reads.txt
    optcache simulate --nodes 1 --trace-format oracleGeneral --trace w01.oracleGeneral.bin)";

// Simulates, and says on a terminal how far it is.
class SimulationRunner {
 public:
  SimulationRunner(const SimulateScene& scene, std::size_t runs)
      : scene_(scene), all_(runs * scene.run.reads.size()) {}

  Result<simulation::PolicyResult> Run(const simulation::CacheOptions& cache,
                                       simulation::PolicyKind policy) {
    const auto progress = [&](std::uint64_t reads) {
      line_.Show(simulation::PolicyName(policy), done_ + reads, all_);
    };
    auto result = simulation::Simulate(scene_.run, cache, policy, progress);
    done_ += scene_.run.reads.size();
    return result;
  }

 private:
  const SimulateScene& scene_;
  ProgressLine line_{"reads"};
  std::uint64_t done_ = 0;
  std::uint64_t all_;
};

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

Status RunSimulate(const SimulateFlags& flags) {
  ASSIGN_OR_RETURN(const SimulateScene scene, MakeScene(flags));
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
      "permutation (shuffled again each epoch), replacement, weighted (lognormal weights), half (a "
      "random half each epoch), mixture (30 % of the samples three times) or zipf");
  add("--zipf-exponent", flags.zipf_exponent, "of zipf, 0 to 10");
  add("--samples", flags.samples, "in the dataset")->check(WholeNumber<std::uint32_t>());
  add("--epochs", flags.epochs, "of the slowest job")->check(WholeNumber<std::uint32_t>());
  add("--pass-length", flags.pass_length,
      "the part of each epoch's order that is read, where training leaves its loop early; such a "
      "part is then an epoch");
  add("--seed", flags.seed, "of the orders, sizes and chances")
      ->check(WholeNumber<std::uint64_t>());
  add("--trace", flags.trace, "a file of recorded reads instead, read once by one job");
  add("--trace-format", flags.trace_format, "ids (a number a line) or oracleGeneral")
      ->check(CLI::IsMember({"ids", "oracleGeneral"}));
  add("--sizes", flags.sizes, "of samples: equal or lognormal")
      ->check(CLI::IsMember({"equal", "lognormal"}));
  add("--mean-bytes", flags.mean_bytes, "mean size");
  add("--sigma", flags.sigma, "standard deviation of the sizes' logarithm, for lognormal");
  add("--manifest", flags.manifest, "number and sizes of the samples of this manifest");
}

void AddJobOptions(CLI::App& command, SimulateFlags& flags) {
  constexpr const char* kJobs = "Who reads";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group(kJobs)->capture_default_str();
  };
  add("--jobs", flags.jobs, "that share the cache, each with an order of its own")
      ->check(WholeNumber<std::uint32_t>());
  add("--rates", flags.rates, "how fast the jobs are beside each other, by comma")
      ->delimiter(',')
      ->default_str("");
  add("--apart", flags.apart, "how far each job is ahead of the next one, in epochs");
  command.add_flag("--one-seed", flags.one_seed, "all jobs read in one order")->group(kJobs);
  add("--drift", flags.drift, "how much rates vary over time (standard deviation, as a share)");
  add("--nodes", flags.nodes, "cache nodes")->check(WholeNumber<std::uint32_t>());
  add("--ranks", flags.ranks, "of each job, in turn on the nodes; 0: one a node")
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
  add("--capacity", flags.capacity, "of all nodes together, as a share of the dataset: 0.3 or 30%")
      ->transform(PercentAsShare);
  add("--objective", flags.objective,
      "what optimal spares: Bytes, or Requests at equal bytes (one shuffling job)")
      ->check(CLI::IsMember({"Bytes", "Requests"}));
  add("--lookahead", flags.lookahead, "of min and min-forced, in epochs; 0: without limit");
  add("--store-bandwidth", flags.store_bandwidth,
      "what the store delivers, as a share of what the jobs could read without waiting; by comma. "
      "Adds the columns TIME")
      ->delimiter(',')
      ->default_str("");
  add("--store-latency", flags.store_latency,
      "until the first byte, in reads that all jobs together could make meanwhile");
  add("--staging-slots", flags.staging_slots, "samples that are asked for ahead, beside the cache")
      ->check(WholeNumber<std::uint32_t>());
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Verb& chosen) {
  CLI::App* command = app.add_subcommand("simulate", kSimulateSummary);
  command->footer(kSimulateMore);
  // Shared by the options, which write it, and the callback, which reads it: both live in `app`.
  const auto flags = std::make_shared<SimulateFlags>();
  AddReadOptions(*command, *flags);
  AddJobOptions(*command, *flags);
  AddCacheOptions(*command, *flags);
  command->add_option("--policies", flags->policies, "By comma; all if none is named")
      ->delimiter(',');
  command->add_option("--output", flags->output, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}))
      ->capture_default_str();
  command->add_option("--plot", flags->plot,
                      "write an SVG file with three pictures: hit ratio over capacity and over the "
                      "epoch, epoch time over store bandwidth");
  command->callback([flags, &chosen] { chosen = [flags] { return RunSimulate(*flags); }; });
}

}  // namespace optcache::cli
