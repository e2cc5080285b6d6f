// Checks the flags of a simulation, and makes the reads, the sizes, the policies and the goal.
//
// Flags that have no effect together are refused with a sentence. A trace is one job that reads it
// once. Sizes come from a manifest, the trace, or a distribution, in this order.

#include "cli/simulate/simulate_scene.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "cli/manifest/manifest_sizes.h"
#include "cli/simulate/simulate_until.h"
#include "simulation/trace_file.h"
#include "simulation/workload.h"

namespace optcache::cli {
namespace {

using simulation::PolicyKind;
using simulation::Trace;

constexpr double kMaxZipfExponent = 10;

template <std::size_t kCount>
std::string Listed(const std::array<std::string_view, kCount>& names) {
  std::string text;
  for (const std::string_view name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

Result<Trace> ReadTrace(const SimulateFlags& flags) {
  // One such as /dev/zero has no end.
  std::error_code unknown;
  const auto kind = std::filesystem::status(flags.trace, unknown).type();
  if (kind == std::filesystem::file_type::character || kind == std::filesystem::file_type::block) {
    return Error(Code::kInvalidArgument, flags.trace + ": a device; give a file, or a pipe");
  }
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(flags.trace, simulation::kMaxTraceBytes));
  Result<Trace> trace = flags.trace_format == "ids"
                            ? simulation::ParseIdTrace(bytes)
                            : simulation::ParseOracleGeneral(AsBytes(bytes));
  if (!trace) return Error(std::move(trace).error().WithContext(flags.trace));
  return trace;
}

Result<simulation::Pace> PaceOf(const SimulateFlags& flags) {
  simulation::Pace pace{.jobs = {},
                        .epochs = flags.epochs,
                        .pass_length = flags.pass_length,
                        .drift = flags.drift,
                        .ranks = flags.ranks == 0 ? flags.nodes : flags.ranks,
                        .nodes = flags.nodes,
                        .seed = flags.seed};
  if (flags.jobs == 0 || flags.jobs > simulation::kMaxJobs) {
    return Error(Code::kInvalidArgument, "jobs: " + std::to_string(flags.jobs) +
                                             "; it takes 1 to " +
                                             std::to_string(simulation::kMaxJobs));
  }
  if (!flags.rates.empty() && flags.rates.size() != flags.jobs) {
    return Error(Code::kInvalidArgument, "rates: " + std::to_string(flags.rates.size()) +
                                             " of them for " + std::to_string(flags.jobs) +
                                             " jobs; give one a job, or none");
  }
  if (!(flags.apart >= 0 && flags.apart * (flags.jobs - 1) < 1)) {
    return Error(
        Code::kInvalidArgument,
        "apart: it takes 0 and more, in epochs, and less than one from the first job to the "
        "last");
  }
  for (std::uint32_t job = 0; job < flags.jobs; ++job) {
    pace.jobs.push_back({.rate = flags.rates.empty() ? 1 : flags.rates[job],
                         .ahead = flags.apart * (flags.jobs - 1 - job)});
  }
  return pace;
}

Result<simulation::Reads> ReadsOfWorkload(const SimulateFlags& flags, std::uint32_t samples) {
  const auto workload = simulation::WorkloadFromName(flags.workload);
  if (!workload) {
    return Error(Code::kInvalidArgument, "workload: " + flags.workload + "; there are " +
                                             Listed(simulation::kWorkloadNames));
  }
  ASSIGN_OR_RETURN(const simulation::Pace pace, PaceOf(flags));
  if (samples == 0) return Error(Code::kInvalidArgument, "samples: 0; there must be one at least");
  if (samples > simulation::kMaxReads) {
    return Error(Code::kInvalidArgument, "samples: " + std::to_string(samples) + "; at most " +
                                             std::to_string(simulation::kMaxReads));
  }
  if (!(flags.zipf_exponent >= 0 && flags.zipf_exponent <= kMaxZipfExponent)) {
    return Error(Code::kInvalidArgument, "zipf-exponent: it takes 0 to 10");
  }
  const simulation::OrderMaker orders({.workload = *workload,
                                       .samples = samples,
                                       .zipf_exponent = flags.zipf_exponent,
                                       .seed = flags.seed});
  return simulation::MakeReads(samples, pace, [&](std::uint32_t job, PassNumber pass) {
    return orders.Make(flags.one_seed ? 0 : job, pass);
  });
}

// One job that reads it once.
Result<simulation::Reads> ReadsOfTrace(const SimulateFlags& flags, const Trace& trace) {
  if (flags.jobs != 1) {
    return Error(Code::kInvalidArgument, "trace: it is one job's; leave --jobs at 1");
  }
  if (flags.pass_length != 1) {
    return Error(Code::kInvalidArgument, "trace: it is read whole; leave --pass-length at 1");
  }
  SimulateFlags once = flags;
  once.epochs = 1;
  ASSIGN_OR_RETURN(const simulation::Pace pace, PaceOf(once));
  return simulation::MakeReads(trace.samples, pace,
                               [&](std::uint32_t, PassNumber) { return trace.reads; });
}

Result<plan::Sizes> SizesOf(const SimulateFlags& flags, std::uint32_t samples) {
  if (!(flags.mean_bytes >= 1 && flags.mean_bytes <= 1e9)) {
    return Error(Code::kInvalidArgument, "mean-bytes: it takes 1 to 1000000000");
  }
  if (!(flags.sigma >= 0 && flags.sigma <= 5)) {
    return Error(Code::kInvalidArgument, "sigma: it takes 0 to 5");
  }
  if (flags.sizes == "lognormal") {
    return simulation::LognormalSizes(samples, flags.mean_bytes, flags.sigma, flags.seed);
  }
  return plan::Sizes::Equal(samples, static_cast<std::uint32_t>(flags.mean_bytes));
}

Result<std::vector<PolicyKind>> PoliciesOf(const SimulateFlags& flags) {
  std::vector<PolicyKind> policies;
  for (const std::string& name : flags.policies) {
    const auto policy = simulation::PolicyFromName(name);
    if (!policy) {
      return Error(Code::kInvalidArgument,
                   "policies: " + name + "; there are " + Listed(simulation::kPolicyNames));
    }
    if (std::ranges::find(policies, *policy) == policies.end()) policies.push_back(*policy);
  }
  if (policies.empty() && !flags.until.empty()) policies.push_back(PolicyKind::kOptimal);
  if (!policies.empty()) return policies;
  for (const std::string_view name : simulation::kPolicyNames)
    policies.push_back(*simulation::PolicyFromName(name));
  return policies;
}

Result<dataset::StorePrice> PriceOf(const SimulateFlags& flags) {
  dataset::StorePrice price;
  const auto read = [](const char* flag, const std::string& text, double& out) -> Status {
    if (text.empty()) return OkStatus();
    const Result<double> value = dataset::ParsePrice(text);
    if (!value) return Status(value.error()).WithContext(flag);
    out = *value;
    return OkStatus();
  };
  RETURN_IF_ERROR(read("price-per-request", flags.price_per_request, price.per_request));
  RETURN_IF_ERROR(read("price-per-gib", flags.price_per_gib, price.per_gib));
  return price;
}

Result<std::optional<simulation::Goal>> GoalOf(const SimulateFlags& flags) {
  ASSIGN_OR_RETURN(const dataset::StorePrice price, PriceOf(flags));
  const bool has_price = price != dataset::StorePrice{};
  if (flags.until.empty() && !has_price) return std::nullopt;
  const auto refuse = [](const char* why) { return Error(Code::kInvalidArgument, why); };
  if (flags.until.empty())
    return refuse("price-per-request, price-per-gib: set --until cost=AMOUNT, too");
  ASSIGN_OR_RETURN(simulation::Goal goal, ParseGoal(flags.until));
  if (goal.of == simulation::Goal::Of::kCost) {
    if (!has_price)
      return refuse("until: cost needs a price: set --price-per-request, --price-per-gib or both");
    if (!flags.store_bandwidth.empty())
      return refuse("store-bandwidth: what a run costs does not depend on it; leave it out");
    goal.price = price;
    return goal;
  }
  if (has_price) {
    return refuse(
        "price-per-request, price-per-gib: how long training waits does not depend on prices; "
        "leave them out");
  }
  if (flags.store_bandwidth.size() != 1) {
    return refuse(
        "until: waiting needs one --store-bandwidth: what the store delivers, as a share of what "
        "the jobs could read");
  }
  return goal;
}

}  // namespace

Result<SimulateScene> MakeScene(const SimulateFlags& flags) {
  SimulateScene scene;
  ASSIGN_OR_RETURN(scene.policies, PoliciesOf(flags));
  ASSIGN_OR_RETURN(scene.goal, GoalOf(flags));
  std::optional<plan::Sizes> sizes;
  if (!flags.manifest.empty()) {
    ASSIGN_OR_RETURN(sizes, SizesOfManifest(flags.manifest));
  }
  if (flags.trace.empty()) {
    ASSIGN_OR_RETURN(scene.run, ReadsOfWorkload(flags, sizes ? sizes->count() : flags.samples));
  } else {
    ASSIGN_OR_RETURN(Trace trace, ReadTrace(flags));
    ASSIGN_OR_RETURN(scene.run, ReadsOfTrace(flags, trace));
    if (sizes) return Error(Code::kInvalidArgument, "manifest: a trace has samples of its own");
    if (!trace.sizes.empty()) sizes = plan::Sizes(std::move(trace.sizes));
  }
  if (!sizes) {
    ASSIGN_OR_RETURN(sizes, SizesOf(flags, scene.run.sample_count));
  }
  scene.cache.sizes = *std::move(sizes);
  scene.cache.capacity = flags.capacity;
  scene.cache.objective =
      flags.objective == "Requests" ? plan::Objective::kRequests : plan::Objective::kBytes;
  scene.cache.lookahead = flags.lookahead;
  scene.cache.seed = flags.seed;
  if (flags.store_latency != 0 && flags.store_bandwidth.empty() && flags.plot.empty()) {
    return Error(Code::kInvalidArgument,
                 "store-latency: it shows in the time of an epoch; set --store-bandwidth, too, or "
                 "--plot");
  }
  for (const double bandwidth : flags.store_bandwidth) {
    scene.cache.stores.push_back({.bandwidth = bandwidth,
                                  .latency = flags.store_latency,
                                  .staging_slots = flags.staging_slots});
  }
  return scene;
}

}  // namespace optcache::cli
