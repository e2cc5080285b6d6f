#include "plan/simulate.h"

#include <cmath>

#include <gtest/gtest.h>

namespace optcache::plan {
namespace {

// 20,000 samples, 12 epochs; ratios of the steady state scatter by about .001.
SimulateOptions Options(std::uint32_t nodes, double capacity) {
  return {
      .samples = 20'000, .epochs = 12, .nodes = nodes, .jobs = 1, .capacity = capacity, .seed = 1};
}

PolicyResult Simulated(const SimulateOptions& options, PolicyKind kind) {
  const Result<PolicyResult> result = Simulate(options, kind);
  EXPECT_TRUE(result.has_value()) << result.error().ToString();
  EXPECT_EQ(result->capacity_exceeded, 0U);
  return *result;
}

TEST(Simulate, OptimalMeetsTheBoundAndTheFloorOfMoves) {
  struct Line {
    std::uint32_t nodes;
    double capacity;
    double reads_of_bound;  // at 100,000 samples; what is missing is a few slots a node
    double moved;
  };
  for (const Line& line : {Line{1, 0.3, 1.0, 0}, Line{4, 0.1, 1.0, 0}, Line{4, 0.3, 1.0, 0.0495},
                           Line{4, 0.7, 1.0002, 0.4501}, Line{16, 0.3, 1.0001, 0.2377},
                           Line{16, 0.7, 1.0006, 0.6371}}) {
    SCOPED_TRACE(std::to_string(line.nodes) + " nodes, " + std::to_string(line.capacity));
    const SimulateOptions options = Options(line.nodes, line.capacity);
    const PolicyResult result = Simulated(options, PolicyKind::kOptimal);
    const auto bound = static_cast<double>(*StoreReadBound(options));
    EXPECT_GE(static_cast<double>(result.store_reads), bound);
    EXPECT_LE(static_cast<double>(result.store_reads) / bound,
              1 + (line.reads_of_bound - 1) * 5 + 0.0002);
    EXPECT_NEAR(result.moved_per_access, line.moved, 0.004);
    EXPECT_LE(result.peer_per_access, 0.001);  // the few slots a node that its own ranks leave
    for (const double tenth : result.hit_ratio_by_tenth)
      EXPECT_NEAR(tenth, line.capacity, 0.01);
  }
}

TEST(Simulate, LruFollowsItsClosedForm) {
  for (const double c : {0.1, 0.3, 0.5}) {
    const double expected = c + (1 - c) * std::log(1 - c);
    EXPECT_NEAR(Simulated(Options(4, c), PolicyKind::kLru).hit_ratio, expected, 0.004);
  }
}

TEST(Simulate, PinHitsItsCapacityButAtPeers) {
  const PolicyResult result = Simulated(Options(4, 0.3), PolicyKind::kPin);
  EXPECT_NEAR(result.hit_ratio, 0.3, 1e-9);
  EXPECT_NEAR(result.peer_per_access, 0.225, 0.003);
  EXPECT_EQ(result.moved_per_access, 0);
}

TEST(Simulate, MinByTheTextbookBunches) {
  const PolicyResult result = Simulated(Options(4, 0.3), PolicyKind::kMin);
  EXPECT_NEAR(result.hit_ratio, 0.3, 0.0005);
  EXPECT_GT(result.hit_ratio_by_tenth[0], 0.99);
  EXPECT_LT(result.hit_ratio_by_tenth[9], 0.01);
}

TEST(Simulate, SeveralJobsHitMoreThanAnyOneCould) {
  SimulateOptions options = Options(4, 0.3);
  options.jobs = 4;
  EXPECT_NEAR(Simulated(options, PolicyKind::kOptimal).hit_ratio, 0.615, 0.003);
  EXPECT_NEAR(Simulated(options, PolicyKind::kLru).hit_ratio, 0.24, 0.005);
  EXPECT_FALSE(StoreReadBound(options).has_value());
}

TEST(Simulate, WithoutACacheEveryReadIsAStoreRead) {
  EXPECT_EQ(Simulated(Options(4, 0.3), PolicyKind::kNone).store_reads, 240'000U);
}

TEST(Simulate, OneSeedGivesOneResult) {
  const PolicyResult first = Simulated(Options(3, 0.5), PolicyKind::kOptimal);
  EXPECT_EQ(first.store_reads, Simulated(Options(3, 0.5), PolicyKind::kOptimal).store_reads);
}

TEST(Simulate, RefusesOptionsOutOfRange) {
  for (const SimulateOptions& options :
       {SimulateOptions{.samples = 0, .epochs = 1}, SimulateOptions{.samples = 1, .epochs = 0},
        SimulateOptions{.samples = 1, .epochs = 1, .nodes = 0},
        SimulateOptions{.samples = 1, .epochs = 1, .nodes = 1, .jobs = 0},
        SimulateOptions{.samples = 1, .epochs = 1, .nodes = 1, .jobs = 1, .capacity = 1.1}}) {
    EXPECT_EQ(Simulate(options, PolicyKind::kPin).error().code(), Code::kInvalidArgument);
  }
}

TEST(PolicyName, GoesBothWays) {
  for (const std::string_view name : {"optimal", "pin", "lru", "min", "none"}) {
    ASSERT_TRUE(PolicyFromName(name).has_value());
    EXPECT_EQ(PolicyName(*PolicyFromName(name)), name);
  }
  EXPECT_FALSE(PolicyFromName("fifo").has_value());
}

}  // namespace
}  // namespace optcache::plan
