#include "coordination/capacity_split.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::coordination {
namespace {

using Shares = std::vector<std::vector<MemberCapacity>>;

TEST(SplitCapacity, FollowsTheMemoryThatMembersOffer) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}, {.id = 4, .capacity = 300}};
  EXPECT_EQ(SplitCapacity(members, {200}), (Shares{{{1, 50}, {4, 150}}}));
}

TEST(SplitCapacity, NeverAsksForMoreThanAMemberHas) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}};
  EXPECT_EQ(SplitCapacity(members, {500}), (Shares{{{1, 100}}}));
}

TEST(SplitCapacity, DatasetsThatWantTooMuchGiveWayInProportion) {
  const std::vector<Member> members = {{.id = 1, .capacity = 100}, {.id = 2, .capacity = 20}};
  EXPECT_EQ(SplitCapacity(members, {180, 60}), (Shares{{{1, 75}, {2, 15}}, {{1, 25}, {2, 5}}}));
}

TEST(SplitCapacity, NothingOfferedNothingGiven) {
  EXPECT_EQ(SplitCapacity({{.id = 1, .capacity = 0}}, {10}), (Shares{{{1, 0}}}));
  EXPECT_EQ(SplitCapacity({}, {10}), (Shares{{}}));
  EXPECT_EQ(SplitCapacity({{.id = 1, .capacity = 5}}, {0}), (Shares{{{1, 0}}}));
}

TEST(SplitCapacity, HoldsForTheLargestNumbers) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Member> members;
    for (MemberId id = 1; id <= 5; ++id) {
      members.push_back({.id = id, .capacity = random.Next() >> random.Below(64)});
    }
    const std::vector<ByteCount> wishes = {random.Next(), random.Next() >> random.Below(64)};
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
