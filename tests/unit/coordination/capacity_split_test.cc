#include "coordination/capacity_split.h"

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

}  // namespace
}  // namespace optcache::coordination
