#include "coordination/rate_shares.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::coordination {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr double kClose = 1e-6;

double Sum(const std::vector<double>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

double Sidecars(std::span<const RateDemand> demands) {
  double all = 0;
  for (const RateDemand& demand : demands)
    all += demand.askers + demand.held_back;
  return all;
}

// --- The slow and obvious one -------------------------------------------------------------------

// What all take together if none may have more than `level`.
double TakenAt(double level, double reserved, std::span<const RateDemand> demands) {
  double taken = 0;
  for (const RateDemand& demand : demands) {
    for (std::uint32_t i = 0; i < demand.askers; ++i)
      taken += std::min(demand.wanted / demand.askers + reserved, level);
    taken += demand.held_back * level;
  }
  return taken;
}

// The highest level that the limit carries, by halving; what is left then is of all.
std::vector<double> Oracle(double limit, std::span<const RateDemand> demands) {
  const double sidecars = Sidecars(demands);
  if (sidecars == 0) return std::vector<double>(demands.size(), 0.0);
  const double reserved = limit * kReservedShare / sidecars;
  double low = 0;
  double high = limit;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (TakenAt(middle, reserved, demands) <= limit ? low : high) = middle;
  }
  const double left = limit - TakenAt(low, reserved, demands);
  std::vector<double> shares;
  for (const RateDemand& demand : demands) {
    shares.push_back(TakenAt(low, reserved, std::span(&demand, 1)) +
                     left * (demand.askers + demand.held_back) / sidecars);
  }
  return shares;
}

// --- Cases
// ----------------------------------------------------------------------------------------

TEST(ShareRate, OneAloneHasAll) {
  EXPECT_THAT(ShareRate(100, std::vector<RateDemand>{{.held_back = 1}}), ElementsAre(100));
  EXPECT_THAT(ShareRate(100, std::vector<RateDemand>{{.askers = 1, .wanted = 0}}),
              ElementsAre(100));
}

TEST(ShareRate, ThoseThatAreHeldBackHaveEqualParts) {
  EXPECT_THAT(ShareRate(120, std::vector<RateDemand>{{.held_back = 1}, {.held_back = 3}}),
              ElementsAre(30, 90));
}

TEST(ShareRate, WhatSomeDoNotWantGoesToThoseThatAreHeldBack) {
  const std::vector<RateDemand> demands = {
      {.askers = 2, .wanted = 20}, {.held_back = 1}, {.askers = 1, .wanted = 16, .held_back = 1}};
  EXPECT_THAT(ShareRate(100, demands), ElementsAre(24, 29, DoubleNear(47, kClose)));
}

TEST(ShareRate, OneThatWantsNothingCanBegin) {
  EXPECT_THAT(ShareRate(100, std::vector<RateDemand>{{.askers = 1}, {.held_back = 1}}),
              ElementsAre(5, 95));
}

TEST(ShareRate, WhereNobodyIsHeldBackWhatIsLeftIsOfAll) {
  const std::vector<RateDemand> demands = {{.askers = 1, .wanted = 40},
                                           {.askers = 1, .wanted = 20}};
  EXPECT_THAT(ShareRate(100, demands), ElementsAre(60, 40));
}

TEST(ShareRate, WantsBeyondTheLimitAreCutAlike) {
  const std::vector<RateDemand> demands = {{.askers = 1, .wanted = 1e300},
                                           {.askers = 1, .wanted = 500}};
  EXPECT_THAT(ShareRate(100, demands), ElementsAre(50, 50));
}

TEST(ShareRate, WithoutAskersOrALimitThereIsNothing) {
  EXPECT_TRUE(ShareRate(100, {}).empty());
  EXPECT_THAT(ShareRate(100, std::vector<RateDemand>{{.wanted = 7}}), ElementsAre(0));
  EXPECT_THAT(ShareRate(0, std::vector<RateDemand>{{.held_back = 1}}), ElementsAre(0));
}

TEST(ShareRate, OfAMapEachGetsItsOwn) {
  struct Asker {
    RateDemand demand;
    double share = 0;
  };
  std::map<std::string, Asker> askers = {{"b", {.demand = {.held_back = 1}}},
                                         {"a", {.demand = {.askers = 1, .wanted = 15}}},
                                         {"c", {.demand = {.held_back = 3}}}};
  ShareRateAmong(
      100, askers, [](const Asker& asker) { return asker.demand; },
      [](Asker& asker, double share) { asker.share = share; });
  EXPECT_DOUBLE_EQ(askers["a"].share, 17) << "with its part of the reserve";
  EXPECT_DOUBLE_EQ(askers["b"].share, 20.75);
  EXPECT_DOUBLE_EQ(askers["c"].share, 62.25);
}

// --- Properties
// -----------------------------------------------------------------------------------

RateDemand SomeDemand(Random& random, double limit) {
  RateDemand demand{.askers = static_cast<std::uint32_t>(random.Below(4)),
                    .held_back = static_cast<std::uint32_t>(random.Below(3))};
  if (random.Below(3) > 0) demand.wanted = random.Unit() * limit * demand.askers;
  return demand;
}

TEST(ShareRate, IsAsTheSlowOneSays) {
  const std::uint64_t seed = TestSeed(611);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    const double limit = 0.5 + random.Unit() * 1000;
    std::vector<RateDemand> demands(random.Below(6));
    for (RateDemand& demand : demands)
      demand = SomeDemand(random, limit / (1 + static_cast<double>(random.Below(4))));
    const std::vector<double> shares = ShareRate(limit, demands);
    const std::vector<double> expected = Oracle(limit, demands);
    ASSERT_EQ(shares.size(), expected.size());
    for (std::size_t i = 0; i < shares.size(); ++i)
      ASSERT_NEAR(shares[i], expected[i], kClose * limit) << "of demand " << i;
    ASSERT_NEAR(Sum(shares), Sidecars(demands) > 0 ? limit : 0, kClose * limit);
  }
}

// A node divides its share among its sidecars by the same function, and adds up what they want
// before. So every sidecar has what it wants, or its equal part of the whole.
TEST(ShareRate, InTwoStepsEachSidecarHasItsEqualPartOrWhatItWants) {
  const std::uint64_t seed = TestSeed(612);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 3000; ++round) {
    const double limit = 0.5 + random.Unit() * 1000;
    std::vector<std::vector<RateDemand>> nodes(1 + random.Below(5));
    std::vector<RateDemand> sums(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].resize(1 + random.Below(5));
      for (RateDemand& one : nodes[i]) {
        const bool is_held = random.Below(3) == 0;
        one = is_held ? RateDemand{.held_back = 1}
                      : RateDemand{.askers = 1, .wanted = random.Unit() * limit / 4};
        sums[i].askers += one.askers;
        sums[i].wanted += one.wanted;
        sums[i].held_back += one.held_back;
      }
    }
    const double equal = limit / Sidecars(sums);
    const std::vector<double> of_nodes = ShareRate(limit, sums);
    double all = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::vector<double> shares = ShareRate(of_nodes[i], nodes[i]);
      all += Sum(shares);
      for (std::size_t j = 0; j < shares.size(); ++j) {
        const double wanted = nodes[i][j].held_back > 0 ? limit : nodes[i][j].wanted;
        ASSERT_GE(shares[j], std::min(wanted, equal) * (1 - kClose)) << "node " << i << ", " << j;
        ASSERT_GT(shares[j], 0);
      }
    }
    ASSERT_LE(all, limit * (1 + kClose));
  }
}

}  // namespace
}  // namespace optcache::coordination
