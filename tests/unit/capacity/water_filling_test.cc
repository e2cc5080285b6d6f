#include "capacity/water_filling.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::coordination {
namespace {

using Bytes = std::vector<ByteCount>;
using Filled = std::vector<Bytes>;
using Members = std::vector<std::vector<std::size_t>>;

Filled Fill(const Bytes& offers, const Members& members,
            const std::vector<WaterFilling::Rise>& rises) {
  WaterFilling filling(offers, members);
  filling.Raise(rises);
  return filling.Shares();
}

TEST(WaterFilling, GivesWhatIsWantedInProportionToOffers) {
  EXPECT_EQ(Fill({100, 300}, {{0, 1}}, {{0, 200}}), (Filled{{50, 150}}));
}

TEST(WaterFilling, ASmallOneIsServedBeforeALargeOne) {
  EXPECT_EQ(Fill({100}, {{0}, {0}, {0}}, {{0, 1000}, {1, 10}, {2, 1000}}),
            (Filled{{45}, {10}, {45}}));
}

TEST(WaterFilling, WhoFindsAMemberFullGoesOnAtTheOthers) {
  EXPECT_EQ(Fill({100, 100}, {{0}, {0, 1}}, {{0, 1000}, {1, 1000}}), (Filled{{67}, {33, 100}}));
}

TEST(WaterFilling, WhoHasLessRisesFirst) {
  const Bytes offers = {100};
  const Members members = {{0}, {0}};
  WaterFilling filling(offers, members);
  filling.Raise(std::vector<WaterFilling::Rise>{{0, 30}});
  filling.Raise(std::vector<WaterFilling::Rise>{{0, 1000}, {1, 1000}});
  EXPECT_EQ(filling.Shares(), (Filled{{50}, {50}}));
}

TEST(WaterFilling, WhatIsGivenStays) {
  const Bytes offers = {100};
  const Members members = {{0}, {0}};
  WaterFilling filling(offers, members);
  filling.Raise(std::vector<WaterFilling::Rise>{{0, 80}});
  filling.Raise(std::vector<WaterFilling::Rise>{{1, 1000}});
  EXPECT_EQ(filling.Shares(), (Filled{{80}, {20}}));
}

TEST(WaterFilling, RoundingLosesNoByte) {
  EXPECT_EQ(Fill({100, 100, 100}, {{0, 1, 2}}, {{0, 10}}), (Filled{{4, 3, 3}}));
}

TEST(WaterFilling, WithoutMembersOrWishesThereIsNothing) {
  EXPECT_EQ(Fill({}, {{}}, {{0, 10}}), (Filled{{}}));
  EXPECT_EQ(Fill({0}, {{0}}, {{0, 10}}), (Filled{{0}}));
  EXPECT_EQ(Fill({5}, {{0}}, {{0, 0}}), (Filled{{0}}));
  EXPECT_TRUE(Fill({5}, {}, {}).empty());
}

// Nothing is left where somebody wants more, nobody has more than wanted, and nobody who lacks
// something shares a member with one that has more and took it there.
TEST(WaterFilling, HoldsItsPromisesOnRandomClaims) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    Bytes offers(1 + random.Below(5));
    for (ByteCount& offer : offers)
      offer = 1'000'000 + random.Below(9'000'000);
    Members members(1 + random.Below(6));
    std::vector<WaterFilling::Rise> rises;
    for (std::size_t claim = 0; claim < members.size(); ++claim) {
      for (std::size_t m = 0; m < offers.size(); ++m) {
        if (random.Below(2) == 0) members[claim].push_back(m);
      }
      rises.push_back({.claim = claim, .until = random.Below(20'000'000)});
    }
    const Filled shares = Fill(offers, members, rises);
    Bytes used(offers.size());
    Bytes totals;
    for (std::size_t claim = 0; claim < members.size(); ++claim) {
      totals.push_back(std::accumulate(shares[claim].begin(), shares[claim].end(), ByteCount{0}));
      EXPECT_LE(totals[claim], rises[claim].until);
      for (std::size_t i = 0; i < members[claim].size(); ++i)
        used[members[claim][i]] += shares[claim][i];
    }
    for (std::size_t m = 0; m < offers.size(); ++m)
      EXPECT_LE(used[m], offers[m]);
    for (std::size_t claim = 0; claim < members.size(); ++claim) {
      if (totals[claim] == rises[claim].until) continue;
      for (const std::size_t m : members[claim])
        EXPECT_GE(used[m] + 10, offers[m]) << "claim " << claim << " wants more, member " << m;
      // Its last member was filled by claims that had no more than it has.
      const bool fair =
          members[claim].empty() || std::ranges::any_of(members[claim], [&](auto m) {
            for (std::size_t other = 0; other < members.size(); ++other) {
              const bool there = std::ranges::find(members[other], m) != members[other].end();
              if (there && members[other].size() == 1 && totals[other] > totals[claim] + 10)
                return false;
            }
            return true;
          });
      EXPECT_TRUE(fair) << "claim " << claim;
    }
  }
}

}  // namespace
}  // namespace optcache::coordination
