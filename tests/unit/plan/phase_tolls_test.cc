#include "plan/phase_tolls.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"
#include "plan/plan.h"
#include "unit/plan/plan_testing.h"

namespace optcache::plan {
namespace {

constexpr std::uint32_t kSamples = 20'000;

Inputs TwoJobs(NodeIndex nodes, std::uint32_t samples, ByteCount capacity) {
  Inputs inputs;
  inputs.sizes = Sizes::Equal(samples, 1);
  for (StreamId id = 0; id < 2; ++id)
    inputs.streams.push_back({.id = id, .node_of_rank = OneRankANode(nodes)});
  inputs.capacities.assign(nodes, capacity / nodes);
  return inputs;
}

std::vector<Passes> Shuffles(std::uint32_t samples, std::size_t passes, std::uint64_t seed) {
  Random random(seed);
  std::vector<Passes> streams(2);
  for (Passes& orders : streams) {
    for (std::size_t i = 0; i < passes; ++i)
      orders.push_back(Shuffled(samples, random));
  }
  return streams;
}

// Hit ratio by tenth of passes [2, all but two), in which nothing begins or ends.
std::vector<double> HitsByTenth(const Inputs& inputs, const std::vector<Passes>& passes) {
  std::vector<double> hits(10);
  const std::size_t last = passes[0].size() - 2;
  Result<Planner> planner = Planner::Make(inputs, ProvidePasses(passes));
  for (Result<PlanWindow> window = planner->Next(); !window->plans.empty();
       window = planner->Next()) {
    for (const auto& plan : window->plans) {
      if (plan->key().pass < 2 || plan->key().pass >= last) continue;
      for (Position p = plan->begin(); p < plan->end(); ++p) {
        if (plan->At(p).holder != kNoNode) hits[p * 10 / passes[0][0].size()] += 1;
      }
    }
  }
  const auto reads = static_cast<double>((last - 2) * 2 * passes[0][0].size() / 10);
  for (double& share : hits)
    share /= reads;
  return hits;
}

// MIN's own run from .35 to .74.
TEST(PhaseTolls, TwoJobsInStepHitEvenly) {
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}}) {
    SCOPED_TRACE(nodes);
    const std::vector<double> hits =
        HitsByTenth(TwoJobs(nodes, kSamples, kSamples * 3 / 10), Shuffles(kSamples, 8, 1));
    EXPECT_GT(*std::ranges::min_element(hits), .43);
    EXPECT_LT(*std::ranges::max_element(hits), .69);
    EXPECT_NEAR(std::accumulate(hits.begin(), hits.end(), 0.0) / 10, .549, .003);
  }
}

// All windows at once by MIN itself would need as many reads, but for a few in a thousand.
TEST(PhaseTolls, CostATenthOfAPerCent) {
  const std::vector<Passes> passes = Shuffles(kSamples, 8, 2);
  const CheckedRun even = RunChecked(TwoJobs(4, kSamples, kSamples * 3 / 10), passes);
  // Below kLeastSamples nothing is made even: the same orders, of which each sample is one of six.
  const std::vector<Passes> few = Shuffles(Miniature::kLeastSamples - 1, 8, 2);
  const CheckedRun min = RunChecked(
      TwoJobs(4, Miniature::kLeastSamples - 1, (Miniature::kLeastSamples - 1) * 3 / 10), few);
  const auto share = [](const CheckedRun& run) {
    return static_cast<double>(run.replayed.store_reads) /
           static_cast<double>(run.replayed.accesses);
  };
  EXPECT_LT(share(even), 1.002 * share(min));
}

TEST(PhaseTolls, OfADatasetWithFewSamplesThereAreNone) {
  EXPECT_FALSE(Miniature(Miniature::kLeastSamples - 1, 2).exists());
  EXPECT_TRUE(Miniature(Miniature::kLeastSamples, 2).exists());
  EXPECT_FALSE(Miniature(0, 1).exists());
}

TEST(PhaseTolls, AMiniatureHasItsShareOfTheSamples) {
  for (const std::uint32_t samples : {4096U, 100'000U, 1'281'167U, 10'000'000U}) {
    for (const std::size_t streams : {1U, 2U, 8U, 200U}) {
      const Miniature miniature(samples, streams);
      std::uint32_t count = 0;
      for (SampleId sample = 0; sample < samples; ++sample)
        count += miniature.Has(sample) ? 1U : 0U;
      EXPECT_GE(count, Miniature::kLeastSamples * 9 / 10) << samples << " " << streams;
      EXPECT_LE(count,
                std::max<std::size_t>(2 * Miniature::kLeastSamples, 2 * 16'384 / streams) + 9)
          << samples << " " << streams;
    }
  }
}

// Of eight jobs no phase is worth a sample: MIN stays as it is.
TEST(PhaseTolls, WhatIsEvenStaysAsItIs) {
  Random random(3);
  Miniature miniature(10'000, 8);
  for (std::size_t pass = 0; pass < 2; ++pass) {
    Passes orders;
    for (std::size_t job = 0; job < 8; ++job)
      orders.push_back(Shuffled(10'000, random));
    for (std::size_t read = 0; read < 80'000; ++read) {
      const SampleId sample = orders[read % 8][read / 8];
      if (miniature.Has(sample)) miniature.AddRead(pass * 80'000 + read, sample, 1);
    }
  }
  PhaseTolls even;
  even.fill(kOneToll);
  EXPECT_EQ(miniature.EvenTolls(80'000, 3000), even);
}

// No room, no reads, sizes of 0: an answer all the same.
TEST(PhaseTolls, TakesWhateverComes) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Miniature miniature(5000, 1 + random.Below(300));
    const std::size_t window = 1 + random.Below(3000);
    for (std::size_t time = 0; time < 2 * window; ++time) {
      if (random.Below(3) == 0) continue;
      const auto sample = static_cast<SampleId>(random.Below(500));
      miniature.AddRead(time, sample, sample % 7 == 0 ? 0U : 1U << (sample % 32));
    }
    for (const ByteCount capacity : {ByteCount{0}, ByteCount{1000}, ~ByteCount{0}}) {
      for (const std::uint32_t toll : miniature.EvenTolls(window, capacity)) {
        EXPECT_GE(toll, kOneToll * 7 / 10);
        EXPECT_LE(toll, kOneToll * 4 / 3);
      }
    }
  }
}

}  // namespace
}  // namespace optcache::plan
