#include "operator/reconcile/placement/fair_share.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::reconcile {
namespace {

using Bytes = std::vector<ByteCount>;

TEST(FairShares, GivesWhatIsWantedWhereThereIsEnough) {
  EXPECT_EQ(FairShares(Bytes{100, 100}, std::vector<Claim>{{50, {0, 1}}, {60, {1}}}),
            (Bytes{50, 60}));
}

TEST(FairShares, ASmallOneIsServedBeforeALargeOne) {
  EXPECT_EQ(FairShares(Bytes{100}, std::vector<Claim>{{1000, {0}}, {10, {0}}, {1000, {0}}}),
            (Bytes{45, 10, 45}));
}

TEST(FairShares, OneThatIsAloneOnAnotherNodeGetsAllOfThat) {
  EXPECT_EQ(FairShares(Bytes{100, 100}, std::vector<Claim>{{1000, {0}}, {1000, {0}}, {1000, {1}}}),
            (Bytes{50, 50, 100}));
}

TEST(FairShares, WithoutNodesOrWishesThereIsNothing) {
  EXPECT_EQ(FairShares(Bytes{}, std::vector<Claim>{{10, {}}}), (Bytes{0}));
  EXPECT_EQ(FairShares(Bytes{0}, std::vector<Claim>{{10, {0}}}), (Bytes{0}));
  EXPECT_EQ(FairShares(Bytes{5}, std::vector<Claim>{{0, {0}}}), (Bytes{0}));
  EXPECT_TRUE(FairShares(Bytes{5}, {}).empty());
}

// What the claims take of each member, as a share of its offer.
std::vector<double> Loads(const Bytes& offers, const std::vector<Claim>& claims,
                          const Bytes& shares) {
  std::vector<double> loads(offers.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    double offered = 0;
    for (const std::size_t m : claims[i].members)
      offered += static_cast<double>(offers[m]);
    for (const std::size_t m : claims[i].members)
      loads[m] += offered > 0 ? static_cast<double>(shares[i]) / offered : 0;
  }
  return loads;
}

// The definition of max-min: who has less than wanted has a full member on which nobody has more.
TEST(FairShares, NobodyCouldGetMoreWithoutTakingFromOneThatHasLess) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Bytes offers(1 + random.Below(5));
    for (ByteCount& offer : offers)
      offer = 1'000'000 + random.Below(9'000'000);
    std::vector<Claim> claims(1 + random.Below(6));
    for (Claim& claim : claims) {
      claim.wanted = random.Below(20'000'000);
      for (std::size_t m = 0; m < offers.size(); ++m) {
        if (random.Below(2) == 0) claim.members.push_back(m);
      }
    }
    const Bytes shares = FairShares(offers, claims);
    const std::vector<double> loads = Loads(offers, claims, shares);
    for (const double load : loads)
      EXPECT_LE(load, 1 + 1e-6);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      EXPECT_LE(shares[i], claims[i].wanted);
      if (shares[i] + 10 >= claims[i].wanted || claims[i].members.empty()) continue;
      const bool bottleneck = std::ranges::any_of(claims[i].members, [&](std::size_t m) {
        if (loads[m] < 1 - 1e-4) return false;
        for (std::size_t j = 0; j < claims.size(); ++j) {
          const bool there = std::ranges::find(claims[j].members, m) != claims[j].members.end();
          if (there && shares[j] > shares[i] + 10) return false;
        }
        return true;
      });
      EXPECT_TRUE(bottleneck) << "claim " << i;
    }
  }
}

}  // namespace
}  // namespace optcache::reconcile
