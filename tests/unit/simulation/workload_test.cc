#include "simulation/workload.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::simulation {
namespace {

std::vector<std::uint32_t> Counts(Workload workload, std::uint32_t samples, PassNumber passes) {
  const OrderMaker orders({.workload = workload, .samples = samples, .seed = 1});
  std::vector<std::uint32_t> counts(samples);
  for (PassNumber pass = 0; pass < passes; ++pass) {
    const auto order = orders.Make(0, pass);
    EXPECT_EQ(order.size(), orders.reads_in_pass());
    for (const SampleId sample : order)
      ++counts[sample];
  }
  return counts;
}

TEST(OrderMaker, PermutationReadsEachSampleOnce) {
  EXPECT_EQ(Counts(Workload::kPermutation, 100, 3), std::vector<std::uint32_t>(100, 3));
}

TEST(OrderMaker, HalfReadsEachSampleAtMostOnce) {
  const auto counts = Counts(Workload::kHalf, 101, 1);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 1U), 51);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0U), 50);
}

TEST(OrderMaker, MixtureReadsThreeTenthsThreeTimes) {
  const auto counts = Counts(Workload::kMixture, 100, 1);
  for (SampleId sample = 0; sample < 100; ++sample)
    EXPECT_EQ(counts[sample], sample < 30 ? 3U : 1U);
}

TEST(OrderMaker, ZipfReadsTheFirstSamplesMost) {
  const auto counts = Counts(Workload::kZipf, 1'000, 100);  // 100,000 reads, harmonic number 7.485
  EXPECT_NEAR(counts[0], 13'360, 400);
  EXPECT_NEAR(counts[9], 1'336, 150);
}

TEST(OrderMaker, WeightsAreThoseOfTheRunAndReplacementHasNone) {
  auto weighted = Counts(Workload::kWeighted, 1'000, 200);
  std::sort(weighted.begin(), weighted.end());
  EXPECT_GT(weighted[900], 3 * weighted[500]);  // e^1.28
  auto uniform = Counts(Workload::kReplacement, 1'000, 200);
  std::sort(uniform.begin(), uniform.end());
  EXPECT_LT(uniform[900], 1.2 * uniform[500]);
}

TEST(OrderMaker, OrdersDifferByJobPassAndSeedAndAreMadeAlikeAgain) {
  const OrderMaker orders({.samples = 50, .seed = 1});
  EXPECT_EQ(orders.Make(0, 0), orders.Make(0, 0));
  EXPECT_NE(orders.Make(0, 0), orders.Make(0, 1));
  EXPECT_NE(orders.Make(0, 0), orders.Make(1, 0));
  EXPECT_NE(orders.Make(0, 0), OrderMaker({.samples = 50, .seed = 2}).Make(0, 0));
}

TEST(LognormalSizes, HasTheMeanAndVaries) {
  const plan::Sizes sizes = LognormalSizes(100'000, 110'000, 0.6, 1);
  EXPECT_NEAR(static_cast<double>(sizes.total()) / 100'000, 110'000, 1'500);
  EXPECT_FALSE(sizes.equal());
}

TEST(WorkloadName, GoesBothWays) {
  for (const std::string_view name : kWorkloadNames)
    EXPECT_EQ(WorkloadName(*WorkloadFromName(name)), name);
  EXPECT_FALSE(WorkloadFromName("curriculum").has_value());
}

}  // namespace
}  // namespace optcache::simulation
