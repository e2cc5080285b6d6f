#pragma once

// From the flags of `optcache simulate` to what is simulated. Reads a trace or a manifest.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "simulation/least_capacity.h"
#include "simulation/simulate.h"

namespace optcache::cli {

// As they are written; `--help` of the subcommand says what they mean.
struct SimulateFlags {
  std::string workload = "permutation";
  double zipf_exponent = 1;
  std::string trace;
  std::string trace_format = "ids";
  std::uint32_t samples = 100'000;
  std::uint32_t epochs = 12;
  double pass_length = 1;
  std::uint64_t seed = 0;

  std::uint32_t jobs = 1;
  std::vector<double> rates;
  double apart = 0;
  bool one_seed = false;
  double drift = 0;
  std::uint32_t nodes = 4;
  std::uint32_t ranks = 0;  // as many as nodes

  std::string sizes = "equal";
  double mean_bytes = 110'000;
  double sigma = 0.6;
  std::string manifest;
  double capacity = 0.3;
  std::string objective = "Bytes";
  double lookahead = 0;

  std::vector<double> store_bandwidth;
  double store_latency = 0;
  std::uint32_t staging_slots = 64;

  std::string until;
  std::string price_per_request;
  std::string price_per_gib;

  std::vector<std::string> policies;  // empty: all; with `until`, the plan
  std::string output = "table";
  std::string plot;
};

struct SimulateScene {
  simulation::Reads run;
  simulation::CacheOptions cache;
  std::vector<simulation::PolicyKind> policies;
  std::optional<simulation::Goal> goal;  // then the capacity is asked for
};

// kInvalidArgument names the flag.
Result<SimulateScene> MakeScene(const SimulateFlags& flags);

}  // namespace optcache::cli
