// What is predicted of caches without a plan is what they do in a simulated run.

#include "plan/home_forecast.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "simulation/cluster.h"
#include "simulation/workload.h"

namespace optcache::simulation {
namespace {

constexpr std::uint32_t kSamples = 900;

struct Case {
  std::uint32_t nodes = 1;
  std::vector<JobPace> jobs{JobPace{}};
  double sigma = 0;
  double share = 0.4;
};

plan::HomeInputs InputsOf(const Reads& run, const plan::Sizes& sizes, ByteCount capacity) {
  plan::HomeInputs inputs{.sizes = sizes,
                          .capacities = std::vector<ByteCount>(run.nodes, capacity)};
  for (std::size_t job = 0; job < run.jobs.size(); ++job) {
    inputs.streams.push_back(
        {.id = job, .node_of_rank = run.jobs[job].node_of_rank, .rate = run.jobs[job].rate});
  }
  for (SampleId sample = 0; sample < run.sample_count; ++sample)
    inputs.homes.push_back(static_cast<NodeIndex>(Random::Mix(sample + 1ULL) % run.nodes));
  return inputs;
}

struct Sum {
  std::uint64_t reads = 0;
  std::uint64_t store_reads = 0;
  ByteCount moved_bytes = 0;
  friend bool operator==(const Sum&, const Sum&) = default;
};

// Of the first and of the second epoch of the slowest job.
std::vector<Sum> Simulated(const Reads& run, const plan::Sizes& sizes, ByteCount capacity,
                           const MakePolicy& policy) {
  const auto cluster = MakeHomedCluster(
      {.run = run, .sizes = sizes, .capacities = std::vector<ByteCount>(run.nodes, capacity)},
      NeedsFuture::kNo, policy);
  std::vector<Sum> sums(2);
  for (std::size_t t = 0; t < run.reads.size(); ++t) {
    const Outcome outcome = cluster->Read(run.reads[t]).value();
    Sum& sum = sums[t < run.reads.size() / 2 ? 0 : 1];
    ++sum.reads;
    if (outcome.from == Outcome::From::kStore) ++sum.store_reads;
    if (outcome.moved) sum.moved_bytes += sizes[run.reads[t].sample];
  }
  return sums;
}

std::vector<Sum> Predicted(const Reads& run, plan::HomeInputs inputs) {
  const plan::OrderProvider orders = [&run](StreamId job, PassNumber pass) -> plan::Order {
    const auto& passes = run.jobs[static_cast<std::size_t>(job)].passes;
    return pass < passes.size() ? passes[pass] : nullptr;
  };
  auto forecast = plan::HomeForecast::Make(std::move(inputs), orders, 0);
  EXPECT_TRUE(forecast.has_value());
  std::vector<Sum> sums(2);
  for (Sum& sum : sums) {
    const auto round = forecast->Next();
    EXPECT_TRUE(round.has_value());
    for (const auto& [_, stream] : *round) {
      sum.reads += stream.all.reads;
      sum.store_reads += stream.all.store_reads;
      sum.moved_bytes += stream.all.moved_bytes;
    }
  }
  return sums;
}

TEST(HomeForecast, IsWhatASimulatedRunDoes) {
  const std::vector<Case> cases = {
      {},
      {.nodes = 3},
      {.nodes = 3, .sigma = 1},
      {.nodes = 2, .jobs = {{.rate = 1}, {.rate = 1}}},
      {.nodes = 2, .jobs = {{.rate = 2}, {.rate = 1}}, .sigma = 0.5, .share = 0.7},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& one = cases[i];
    const OrderMaker maker({.workload = Workload::kPermutation, .samples = kSamples, .seed = 5});
    const Pace pace{.jobs = one.jobs, .epochs = 2, .ranks = one.nodes, .nodes = one.nodes};
    const Reads run = MakeReads(kSamples, pace, [&](std::uint32_t job, PassNumber pass) {
                        return maker.Make(job, pass);
                      }).value();
    const plan::Sizes sizes = one.sigma == 0 ? plan::Sizes::Equal(kSamples, 10)
                                             : LognormalSizes(kSamples, 1000, one.sigma, 7);
    const auto capacity =
        static_cast<ByteCount>(static_cast<double>(sizes.total()) * one.share) / one.nodes;
    plan::HomeInputs inputs = InputsOf(run, sizes, capacity);
    EXPECT_EQ(
        Predicted(run, inputs),
        Simulated(run, sizes, capacity, [](const Home& home) { return plan::MakePin(home.room); }))
        << "pin, case " << i;
    inputs.rule = plan::HomeRule::kLru;
    EXPECT_EQ(
        Predicted(run, inputs),
        Simulated(run, sizes, capacity, [](const Home& home) { return plan::MakeLru(home.room); }))
        << "lru, case " << i;
    inputs.rule = plan::HomeRule::kNone;
    EXPECT_EQ(Predicted(run, inputs),
              Simulated(run, sizes, capacity, [](const Home&) { return plan::MakeNone(); }))
        << "none, case " << i;
  }
}

}  // namespace
}  // namespace optcache::simulation
