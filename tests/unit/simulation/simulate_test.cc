#include "simulation/simulate.h"

#include <string>

#include <gtest/gtest.h>

#include "unit/simulation/scene.h"

namespace optcache::simulation {
namespace {

TEST(Simulate, WithoutACacheEveryReadIsAStoreRead) {
  const Reads run = RunOf({.samples = 2'000, .epochs = 3, .nodes = 4});
  CacheOptions options = EqualSizes(run, .3);
  options.stores = {{.bandwidth = 0.5}, {.bandwidth = 2}};
  const PolicyResult result = Simulated(run, options, PolicyKind::kNone);
  EXPECT_EQ(result.store_reads, 6'000U);
  EXPECT_EQ(result.store_bytes, 6'000U);
  EXPECT_NEAR(result.epoch_time.at(0), 2, 1e-9);
  EXPECT_NEAR(result.epoch_time.at(1), 1, 1e-9);
}

TEST(Simulate, OneSeedGivesOneResult) {
  for (const std::string_view name : kPolicyNames) {
    const Scene scene{.samples = 500, .epochs = 3, .jobs = 2, .nodes = 3};
    const Reads first = RunOf(scene);
    const Reads again = RunOf(scene);
    const PolicyKind kind = *PolicyFromName(name);
    EXPECT_EQ(Simulated(first, EqualSizes(first, .4), kind).store_reads,
              Simulated(again, EqualSizes(again, .4), kind).store_reads)
        << name;
  }
}

TEST(Simulate, NoPolicyGoesBelowTheBound) {
  for (const Workload workload :
       {Workload::kPermutation, Workload::kReplacement, Workload::kZipf}) {
    const Reads run = RunOf({.workload = workload, .samples = 800, .epochs = 5});
    for (const double capacity : {0.0, 0.25, 0.8, 1.0}) {
      const CacheOptions options = EqualSizes(run, capacity);
      const Bound bound = *BoundOf(run, options);
      for (const std::string_view name : kPolicyNames) {
        const PolicyResult result = Simulated(run, options, *PolicyFromName(name));
        EXPECT_GE(result.store_reads, *bound.store_reads) << name << " " << capacity;
        EXPECT_GE(result.store_bytes, *bound.store_bytes) << name << " " << capacity;
      }
    }
  }
}

TEST(Simulate, ReportsProgress) {
  const Reads run = RunOf({.samples = 100'000, .epochs = 3});
  std::vector<std::uint64_t> reports;
  const auto result = Simulate(run, EqualSizes(run, .3), PolicyKind::kPin,
                               [&](std::uint64_t reads) { reports.push_back(reads); });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(reports, (std::vector<std::uint64_t>{0, 1U << 18U}));
}

TEST(BoundOf, IsClosedForOneShufflingJobAndKnowsBytesApart) {
  const Reads run = RunOf({.samples = 1'000, .epochs = 3});
  EXPECT_EQ(BoundOf(run, EqualSizes(run, .3))->store_reads, 1'000U + 2 * 700);
  CacheOptions options;
  std::vector<std::uint32_t> sizes(1'000, 1);
  for (std::size_t i = 0; i < 500; ++i)
    sizes[i] = 3;
  options.sizes = plan::Sizes(sizes);
  options.capacity = .25;  // 500 bytes: the small half
  const Bound bound = *BoundOf(run, options);
  EXPECT_EQ(bound.store_reads, 1'000U + 2 * 500);
  EXPECT_EQ(bound.store_bytes, 2'000U + 2 * 1'500);
}

// The first pass is read from its middle: what is held then, the next pass need not read.
TEST(BoundOf, OfAJobThatBeginsInMidPassIsWhatMinReads) {
  const OrderMaker orders({.samples = 1'000, .seed = 1});
  const Reads run =
      *MakeReads(1'000, {.jobs = {{.ahead = 0.5}}, .epochs = 3},
                 [&](std::uint32_t job, PassNumber pass) { return orders.Make(job, pass); });
  const CacheOptions options = EqualSizes(run, .8);
  EXPECT_EQ(BoundOf(run, options)->store_reads,
            Simulated(run, options, PolicyKind::kMin).store_reads);
}

TEST(BoundOf, IsUnknownForSeveralJobsOfUnequalSamples) {
  const Reads run = RunOf({.samples = 100, .epochs = 2, .jobs = 2});
  CacheOptions options;
  options.sizes = LognormalSizes(100, 1000, 1, 1);
  EXPECT_FALSE(BoundOf(run, options)->store_reads.has_value());
}

TEST(Simulate, RefusesOptionsOutOfRange) {
  const Reads run = RunOf({.samples = 10, .epochs = 1});
  const auto code = [&](auto change) {
    CacheOptions options = EqualSizes(run, .5);
    change(options);
    return Simulate(run, options, PolicyKind::kPin).error().code();
  };
  using Options = CacheOptions;
  EXPECT_EQ(code([](Options& o) { o.capacity = 1.1; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.capacity = -.1; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.lookahead = -1; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.bandwidth = 0}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.bandwidth = 1e-300}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.bandwidth = 1001}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.latency = -1}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.latency = 1e300}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.staging_slots = 0}}; }), Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.stores = {{.staging_slots = kMaxStagingSlots + 1}}; }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](Options& o) { o.sizes = plan::Sizes::Equal(9, 1); }), Code::kInvalidArgument);
}

TEST(PolicyName, GoesBothWays) {
  for (const std::string_view name : kPolicyNames)
    EXPECT_EQ(PolicyName(*PolicyFromName(name)), name);
  EXPECT_FALSE(PolicyFromName("arc").has_value());
}

}  // namespace
}  // namespace optcache::simulation
