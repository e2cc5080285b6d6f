#include "capacity/capacity_shares.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::coordination {
namespace {

using Bytes = std::vector<ByteCount>;
using Claims = std::vector<CapacityClaim>;

// Read by one job: each of its bytes saves as much as any other.
CapacityClaim Read(const std::string& name, ByteCount maximum, double slope) {
  return {.dataset = name,
          .maximum = maximum,
          .benefit = {{.until = maximum, .slope = slope}},
          .members = {0}};
}

CapacityClaim Idle(const std::string& name, ByteCount maximum) {
  return {.dataset = name, .maximum = maximum, .members = {0}};
}

Bytes Totals(const Bytes& offers, const Claims& claims) {
  Bytes totals;
  for (const CapacityShare& share : SplitByMarginalBenefit(offers, claims)) {
    EXPECT_EQ(share.total, std::accumulate(share.bytes.begin(), share.bytes.end(), ByteCount{0}));
    totals.push_back(share.total);
  }
  return totals;
}

std::string Why(const Bytes& offers, const Claims& claims, std::size_t of) {
  return ExplainShares(claims, SplitByMarginalBenefit(offers, claims))[of];
}

TEST(SplitByMarginalBenefit, MemoryGoesWhereItSavesMost) {
  EXPECT_EQ(Totals({100}, {Read("a", 80, 1), Read("b", 80, 10)}), (Bytes{20, 80}));
}

TEST(SplitByMarginalBenefit, AByteThatSavesLessComesAfterTheFirstOnesOfAnother) {
  CapacityClaim several = Read("several", 100, 0);
  several.benefit = {{.until = 30, .slope = 5}, {.until = 100, .slope = 1}};
  EXPECT_EQ(Totals({100}, {several, Read("one", 60, 2)}), (Bytes{40, 60}));
}

TEST(SplitByMarginalBenefit, WhatIsWorthTheSameIsShared) {
  EXPECT_EQ(Totals({100}, {Read("a", 80, 1), Read("b", 80, 1.05)}), (Bytes{50, 50}));
  EXPECT_EQ(Totals({100}, {Read("a", 80, 1), Read("b", 80, 1.2)}), (Bytes{20, 80}));
}

TEST(SplitByMarginalBenefit, GuaranteesComeBeforeAnything) {
  CapacityClaim slow = Read("slow", 80, 1);
  slow.guaranteed = 40;
  CapacityClaim idle = Idle("idle", 50);
  idle.guaranteed = 10;
  EXPECT_EQ(Totals({100}, {slow, Read("fast", 80, 10), idle}), (Bytes{40, 50, 10}));
}

TEST(SplitByMarginalBenefit, GuaranteesThatDoNotFitAreSharedFairly) {
  Claims claims = {Read("a", 100, 10), Read("b", 100, 1), Idle("c", 100)};
  claims[0].guaranteed = 90;
  claims[1].guaranteed = 90;
  claims[2].guaranteed = 20;
  EXPECT_EQ(Totals({100}, claims), (Bytes{40, 40, 20}));
}

TEST(SplitByMarginalBenefit, AGuaranteeIsAtMostTheMaximum) {
  CapacityClaim claim = Idle("a", 30);
  claim.guaranteed = 90;
  EXPECT_EQ(Totals({100}, {claim}), Bytes{30});
}

TEST(SplitByMarginalBenefit, WhatNobodyReadsSharesWhatIsLeft) {
  EXPECT_EQ(Totals({100}, {Idle("a", 80), Read("b", 60, 1), Idle("c", 5)}), (Bytes{35, 60, 5}));
  EXPECT_EQ(Totals({100}, {Idle("a", 80), Idle("b", 80)}), (Bytes{50, 50}));
}

TEST(SplitByMarginalBenefit, WhatKeepsNothingIsAsOneThatNobodyReads) {
  EXPECT_EQ(Totals({100}, {Read("a", 80, 0), Idle("b", 80)}), (Bytes{50, 50}));
}

TEST(SplitByMarginalBenefit, OneThatIsPushedAsideOnAMemberGoesOnAtItsOthers) {
  CapacityClaim slow = Read("slow", 150, 1);
  slow.members = {0, 1};
  EXPECT_EQ(Totals({100, 100}, {slow, Read("fast", 100, 10)}), (Bytes{100, 100}));
}

TEST(SplitByMarginalBenefit, WithoutMembersThereIsNothing) {
  CapacityClaim nowhere = Read("a", 80, 1);
  nowhere.members = {};
  EXPECT_EQ(Totals({100}, {nowhere}), Bytes{0});
  EXPECT_EQ(Totals({}, {nowhere}), Bytes{0});
  EXPECT_TRUE(SplitByMarginalBenefit(Bytes{100}, {}).empty());
}

TEST(SplitByMarginalBenefit, SaysWhy) {
  constexpr ByteCount kMiB = 1'048'576;
  const Claims claims = {Read("team/fast", 80 * kMiB, 10), Read("team/slow", 80 * kMiB, 1),
                         Idle("team/idle", 10 * kMiB)};
  const Bytes offers = {100 * kMiB};
  EXPECT_EQ(Why(offers, claims, 0), "80.0 MiB of 80.0 MiB: saves 800 MiB/s");
  EXPECT_EQ(Why(offers, claims, 1),
            "20.0 MiB of 80.0 MiB: saves 20.0 MiB/s; the next byte is worth more to team/fast");
  EXPECT_EQ(Why(offers, claims, 2),
            "0 B of 10.0 MiB: no job reads it; the next byte is worth more to team/fast");
}

TEST(SplitByMarginalBenefit, SaysWhyOfGuaranteesAndEquals) {
  Claims claims = {Read("a", 100, 1), Read("b", 100, 1)};
  claims[1].measured = false;
  EXPECT_EQ(Why({100}, claims, 0), "50 B of 100 B: saves 50 B/s; shared with b");
  EXPECT_EQ(Why({100}, claims, 1),
            "50 B of 100 B: how fast it is read is not known yet; shared with a");
  claims = {Idle("a", 100), Idle("b", 100)};
  claims[0].guaranteed = 90;
  EXPECT_EQ(Why({80}, {claims[0]}, 0),
            "80 B of 100 B: no job reads it; its nodes offer no more; its guarantee of 90 B does "
            "not fit");
  EXPECT_EQ(Why({80}, {Read("a", 100, 1), claims[0]}, 0).substr(0, 28),
            "0 B of 100 B: saves 0 B/s; t");
}

TEST(SplitByMarginalBenefit, SaysThatAGuaranteeGoesFirst) {
  Claims claims = {Read("fast", 100, 10), Idle("idle", 100)};
  claims[1].guaranteed = 60;
  EXPECT_EQ(Why({100}, claims, 0),
            "40 B of 100 B: saves 400 B/s; the guarantee of idle goes first");
}

// --- The best division, by trying all -----------------------------------------------------------

struct Scene {
  Bytes offers;
  Claims claims;
};

// Slopes are equal, or differ by more than kSameMarginalBenefit.
Scene RandomScene(Random& random, std::size_t members) {
  constexpr std::array kSlopes{1.0, 2.0, 5.0, 10.0, 30.0};
  Scene scene;
  for (std::size_t m = 0; m < members; ++m)
    scene.offers.push_back(random.Below(12));
  const std::size_t count = 1 + random.Below(3);
  for (std::size_t i = 0; i < count; ++i) {
    CapacityClaim claim{.dataset = "d" + std::to_string(random.Below(1000)) + std::to_string(i),
                        .maximum = random.Below(12)};
    std::size_t slope = 1 + random.Below(kSlopes.size());
    for (ByteCount until = 0; slope > 0 && until < claim.maximum; --slope) {
      until = std::min(until + 1 + random.Below(6), slope == 1 ? claim.maximum : ByteCount{100});
      claim.benefit.push_back({.until = until, .slope = kSlopes[slope - 1]});
    }
    if (!claim.benefit.empty()) claim.benefit.back().until = std::max(claim.maximum, ByteCount{1});
    if (random.Below(4) == 0) claim.benefit.clear();
    if (random.Below(3) == 0) claim.guaranteed = random.Below(claim.maximum + 1);
    for (std::size_t m = 0; m < members; ++m) {
      if (members == 1 || random.Below(3) > 0) claim.members.push_back(m);
    }
    scene.claims.push_back(std::move(claim));
  }
  return scene;
}

// The most that any division in whole bytes saves which honours the guarantees; below 0: none does.
double Best(const Scene& scene) {
  Bytes left = scene.offers;
  std::function<double(std::size_t, std::size_t, ByteCount)> rest =
      [&](std::size_t i, std::size_t at, ByteCount total) -> double {
    if (i == scene.claims.size()) return 0;
    const CapacityClaim& claim = scene.claims[i];
    if (at == claim.members.size()) {
      if (total < claim.guaranteed) return -1e9;
      return SavedBy(claim.benefit, total) + rest(i + 1, 0, 0);
    }
    ByteCount& room = left[claim.members[at]];
    const ByteCount most = std::min(room, claim.maximum - total);
    double best = -1e9;
    for (ByteCount bytes = 0; bytes <= most; ++bytes) {
      room -= bytes;
      best = std::max(best, rest(i, at + 1, total + bytes));
      room += bytes;
    }
    return best;
  };
  return rest(0, 0, 0);
}

double SavedOf(const Scene& scene, const Bytes& totals) {
  double saved = 0;
  for (std::size_t i = 0; i < totals.size(); ++i)
    saved += SavedBy(scene.claims[i].benefit, totals[i]);
  return saved;
}

TEST(SplitByMarginalBenefit, IsTheBestDivisionOfOneMember) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Scene scene = RandomScene(random, 1);
    const double best = Best(scene);
    if (best < 0) continue;
    EXPECT_NEAR(SavedOf(scene, Totals(scene.offers, scene.claims)), best, 1e-6);
  }
}

// Where datasets lie on different members it is greedy: what is given stays where it is.
TEST(SplitByMarginalBenefit, IsAtLeastHalfOfTheBestOnSeveralMembers) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Scene scene = RandomScene(random, 2);
    for (CapacityClaim& claim : scene.claims)
      claim.guaranteed = 0;
    EXPECT_GE(SavedOf(scene, Totals(scene.offers, scene.claims)) + 30, Best(scene) / 2);
  }
}

TEST(SplitByMarginalBenefit, KeepsToOffersGuaranteesAndMaximumsInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Scene scene = RandomScene(random, 3);
    const auto shares = SplitByMarginalBenefit(scene.offers, scene.claims);
    Bytes used(scene.offers.size());
    ByteCount guarantees = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      EXPECT_LE(shares[i].total, scene.claims[i].maximum);
      ASSERT_EQ(shares[i].bytes.size(), scene.claims[i].members.size());
      for (std::size_t m = 0; m < shares[i].bytes.size(); ++m)
        used[scene.claims[i].members[m]] += shares[i].bytes[m];
      guarantees += scene.claims[i].guaranteed;
    }
    for (std::size_t m = 0; m < used.size(); ++m)
      EXPECT_LE(used[m], scene.offers[m]);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      for (const std::size_t m : scene.claims[i].members) {
        if (guarantees > scene.offers[m]) continue;
        EXPECT_GE(shares[i].total, scene.claims[i].guaranteed);
      }
    }
    std::ranges::reverse(scene.claims);
    auto reversed = SplitByMarginalBenefit(scene.offers, scene.claims);
    std::ranges::reverse(reversed);
    EXPECT_EQ(reversed, shares);
  }
}

// On one member: who is read faster never gets less by it.
TEST(SplitByMarginalBenefit, FasterNeverGetsLess) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Scene scene = RandomScene(random, 1);
    const ByteCount before = Totals(scene.offers, scene.claims)[0];
    for (MarginalBenefit& benefit : scene.claims[0].benefit)
      benefit.slope *= 2;
    EXPECT_GE(Totals(scene.offers, scene.claims)[0] + 1, before);
  }
}

}  // namespace
}  // namespace optcache::coordination
