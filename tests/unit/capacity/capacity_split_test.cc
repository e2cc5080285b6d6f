#include "capacity/capacity_split.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::coordination {
namespace {

using Shares = std::vector<std::vector<MemberCapacity>>;

TEST(SplitCapacity, FollowsTheMemoryThatMembersOffer) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}, {.id = 4, .capacity = 300}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 200}}), (Shares{{{1, 50}, {4, 150}}}));
}

TEST(SplitCapacity, NeverAsksForMoreThanAMemberHas) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 500}}), (Shares{{{1, 100}}}));
}

TEST(SplitCapacity, DatasetsThatWantTooMuchGiveWayInProportion) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}, {.id = 2, .capacity = 20}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 180}, {.bytes = 60}}),
            (Shares{{{1, 75}, {2, 15}}, {{1, 25}, {2, 5}}}));
}

TEST(SplitCapacity, AsksOnlyMembersThatTheDatasetIsPlacedOn) {
  const std::vector<Member> members = {
      {.id = 1, .capacity = 100}, {.id = 2, .capacity = 100}, {.id = 3, .capacity = 100}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 100, .members = {{2, 3}}}}),
            (Shares{{{2, 50}, {3, 50}}}));
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 100, .members = {{}}}}), (Shares{{}}));
}

TEST(SplitCapacity, DisksGiveWhatMemoryDoesNot) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100, .disk = 600},
                                       {.id = 2, .capacity = 100, .disk = 200},
                                       {.id = 3, .capacity = 100}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 700, .with_disk = 700}}),
            (Shares{{{1, 400, 300}, {2, 200, 100}, {3, 100}}}));
  // Memory is enough for it.
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 60, .with_disk = 60}}),
            (Shares{{{1, 20}, {2, 20}, {3, 20}}}));
  // More than all have.
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 5000, .with_disk = 5000}}),
            (Shares{{{1, 700, 600}, {2, 300, 200}, {3, 100}}}));
}

TEST(SplitCapacity, DisksAreForThoseWhoMayUseThem) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100, .disk = 100}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 150}, {.bytes = 50, .with_disk = 90}}),
            (Shares{{{1, 75}}, {{1, 90, 65}}}));
  EXPECT_EQ(
      SplitCapacity(members, {{.bytes = 150, .with_disk = 150}, {.bytes = 50, .with_disk = 90}}),
      (Shares{{{1, 128, 53}}, {{1, 71, 46}}}));
}

// What memory it has was said; the disk is asked for the rest.
TEST(SplitCapacity, SharesAreOfMemory) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100, .disk = 30},
                                       {.id = 2, .capacity = 100},
                                       {.id = 3, .capacity = 50, .disk = 10}};
  EXPECT_EQ(
      SplitCapacity(members,
                    {{.bytes = 90, .members = {{1, 3}}, .shares = {80, 10}, .with_disk = 110}}),
      (Shares{{{1, 95, 15}, {3, 15, 5}}}));
}

TEST(SplitCapacity, FollowsSharesWhereTheyAreSaid) {
  const std::vector<Member> members = {
      {.id = 1, .capacity = 100}, {.id = 2, .capacity = 100}, {.id = 3, .capacity = 50}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 90, .members = {{1, 3}}, .shares = {80, 10}}}),
            (Shares{{{1, 80}, {3, 10}}}));
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 90, .members = {{1, 3}}, .shares = {0, 90}}}),
            (Shares{{{1, 0}, {3, 50}}}));
}

TEST(SplitCapacity, OnlyTheMembersThatAreAskedTooMuchGiveLess) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}, {.id = 2, .capacity = 100}};
  EXPECT_EQ(SplitCapacity(members, {{.bytes = 160}, {.bytes = 120, .members = {{2}}}}),
            (Shares{{{1, 80}, {2, 40}}, {{2, 60}}}));
}

TEST(SplitCapacity, NothingOfferedNothingGiven) {
  EXPECT_EQ(SplitCapacity({{.id = 1, .capacity = 0}}, {{.bytes = 10}}), (Shares{{{1, 0}}}));
  EXPECT_EQ(SplitCapacity({}, {{.bytes = 10}}), (Shares{{}}));
  EXPECT_EQ(SplitCapacity({{.id = 1, .capacity = 5}}, {{.bytes = 0}}), (Shares{{{1, 0}}}));
}

TEST(SplitCapacity, HoldsForTheLargestNumbers) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Member> members;
    for (MemberId id = 1; id <= 5; ++id) {
      members.push_back({.id = id, .capacity = random.Next() >> random.Below(64)});
    }
    const std::vector<CapacityWish> wishes = {{.bytes = random.Next()},
                                              {.bytes = random.Next() >> random.Below(64)}};
    const Shares shares = SplitCapacity(members, wishes);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const ByteCount rest = members[i].capacity - shares[0][i].bytes;
      EXPECT_LE(shares[0][i].bytes, members[i].capacity);
      EXPECT_LE(shares[1][i].bytes, rest);
    }
  }
}

// --- One Dataset's manifests --------------------------------------------------------------------

TEST(ShareGrant, ThePresentManifestHasAllWhileNobodyReads) {
  EXPECT_EQ(ShareGrant({{1, 100}, {4, 50}}, {{}, {}}),
            (Shares{{{1, 100}, {4, 50}}, {{1, 0}, {4, 0}}}));
}

TEST(ShareGrant, FollowsTheRanksThatRead) {
  EXPECT_EQ(ShareGrant({{1, 90}}, {{.ranks = 1}, {.ranks = 2}}), (Shares{{{1, 30}}, {{1, 60}}}));
}

TEST(ShareGrant, AShareGrowsWhenTheOthersHaveLetGo) {
  const std::vector<MemberCapacity> all = {{1, 90}};
  const std::vector<MemberCapacity> less = {{1, 60}};
  EXPECT_EQ(ShareGrant({{1, 90}}, {{.ranks = 1}, {.ranks = 2, .in_force = all}}),
            (Shares{{{1, 0}}, {{1, 60}}}));
  EXPECT_EQ(ShareGrant({{1, 90}}, {{.ranks = 1}, {.ranks = 2, .in_force = less}}),
            (Shares{{{1, 30}}, {{1, 60}}}));
}

TEST(ShareGrant, WhoMovesToOtherMembersLeavesRoomOnceItHas) {
  const std::vector<MemberCapacity> before = {{1, 90}};
  const std::vector<MemberCapacity> grant = {{1, 45}, {2, 45}};
  EXPECT_EQ(ShareGrant(grant, {{.ranks = 1}, {.ranks = 2, .in_force = before}}),
            (Shares{{{1, 0}, {2, 0}}, {{1, 30}, {2, 30}}}));
}

// A share is in force at any later time, in which members come and go.
TEST(ShareGrant, TogetherTheyNeverExceedTheGrant) {
  Random random(7);
  constexpr ByteCount kGrant = 1000;
  std::vector<MemberCapacity> grant = {{2, kGrant}};
  Shares in_force(3);
  for (int round = 0; round < 5000; ++round) {
    if (random.Below(10) == 0) {
      const ByteCount first = random.Below(kGrant);
      grant = {{2, first}, {3 + static_cast<MemberId>(random.Below(2)), kGrant - first}};
    }
    std::vector<ManifestClaim> claims;
    for (const std::vector<MemberCapacity>& shares : in_force)
      claims.push_back({.ranks = random.Below(4), .in_force = shares});
    const Shares due = ShareGrant(grant, claims);
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (random.Below(2) == 0) in_force[i] = due[i];
    }
    ByteCount together = 0;
    for (const std::vector<MemberCapacity>& shares : in_force) {
      for (const MemberCapacity& share : shares)
        together += share.bytes;
    }
    EXPECT_LE(together, kGrant);
  }
}

}  // namespace
}  // namespace optcache::coordination
