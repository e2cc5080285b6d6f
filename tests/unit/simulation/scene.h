#pragma once

// Runs and results for tests, in a line each.

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulation/simulate.h"
#include "simulation/workload.h"
#include "support/seeds.h"

namespace optcache::simulation {

// Takes too long for every run: all capacities and numbers of nodes, OPTCACHE_LONG=1. Else capacity
// .3, and few nodes.
inline bool LeftOut(double capacity, std::uint32_t nodes = 1) {
  return !LongTests() && (std::abs(capacity - .3) > .001 || nodes > 16);
}

struct Scene {
  Workload workload = Workload::kPermutation;
  std::uint32_t samples = 50'000;
  std::uint32_t epochs = 20;
  std::uint32_t jobs = 1;
  std::uint32_t nodes = 1;
  double rate_of_last = 1;  // the others' is 1
  double apart = 0;         // each job is so many epochs ahead of the one after it
  bool one_seed = false;    // all jobs read one order
  double pass_length = 1;
  double drift = 0;
  std::uint64_t seed = 1;
};

inline Reads RunOf(const Scene& scene) {
  Pace pace{.jobs = std::vector<JobPace>(scene.jobs),
            .epochs = scene.epochs,
            .pass_length = scene.pass_length,
            .drift = scene.drift,
            .ranks = scene.nodes,
            .nodes = scene.nodes,
            .seed = scene.seed};
  pace.jobs.back().rate = scene.rate_of_last;
  for (std::uint32_t job = 0; job < scene.jobs; ++job)
    pace.jobs[job].ahead = scene.apart * (scene.jobs - 1 - job);
  const OrderMaker orders(
      {.workload = scene.workload, .samples = scene.samples, .seed = scene.seed});
  Result<Reads> run = MakeReads(scene.samples, pace, [&](std::uint32_t job, PassNumber pass) {
    return orders.Make(scene.one_seed ? 0 : job, pass);
  });
  EXPECT_TRUE(run.has_value()) << run.error().ToString();
  return *std::move(run);
}

inline CacheOptions EqualSizes(const Reads& run, double capacity) {
  CacheOptions options;
  options.sizes = plan::Sizes::Equal(run.sample_count, 1);
  options.capacity = capacity;
  return options;
}

inline PolicyResult Simulated(const Reads& run, const CacheOptions& options, PolicyKind kind) {
  const Result<PolicyResult> result = Simulate(run, options, kind);
  EXPECT_TRUE(result.has_value()) << result.error().ToString();
  return result.value_or(PolicyResult{});
}

}  // namespace optcache::simulation
