#include "coordinator/membership.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kAdmittedAt{std::chrono::hours(1)};
constexpr Duration kMemberSilence = std::chrono::seconds(30);

Report Of(const std::string& node, std::uint64_t incarnation = 1) {
  return {.node = node, .incarnation = incarnation, .address = node + ":1", .capacity = 100};
}

MemberId Admitted(Membership& members, const Report& report, MonotonicTime now = kAdmittedAt) {
  const auto admission = members.Admit(report, /*learning=*/false);
  EXPECT_TRUE(admission);
  members.Take(admission->member, report, now);
  return admission->member;
}

TEST(Membership, ANodeThatWasStartedAgainTakesThePlaceOfTheMemberBefore) {
  Membership members;
  EXPECT_EQ(Admitted(members, Of("a")), 1U);
  EXPECT_EQ(Admitted(members, Of("a")), 1U);
  const auto again = members.Admit(Of("a", 2), /*learning=*/false);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->member, 2U);
  EXPECT_EQ(again->gone, 1U);
  EXPECT_EQ(members.entries().size(), 1U);
  EXPECT_EQ(members.Named("a")->member.id, 2U);
  EXPECT_EQ(members.Admit(Of("a", 1), /*learning=*/false).error().code(), Code::kConflict);
}

TEST(Membership, WhileLearningOnlyMembersAreAdmittedByTheirIds) {
  Membership members;
  Report report = Of("a");
  EXPECT_EQ(members.Admit(report, /*learning=*/true).error().code(), Code::kUnavailable);
  report.member = 7;
  EXPECT_EQ(members.Admit(report, /*learning=*/true)->member, 7U);
  report.node = "b";
  EXPECT_EQ(members.Admit(report, /*learning=*/true).error().code(), Code::kUnavailable);
  EXPECT_EQ(Admitted(members, Of("c")), 8U);
}

TEST(Membership, TellsWhenAnOfferHasChanged) {
  Membership members;
  Report report = Of("a");
  report.manifests = {"b", "a"};
  const MemberId id = Admitted(members, report);
  EXPECT_FALSE(members.Take(id, report, kAdmittedAt));
  std::swap(report.manifests[0], report.manifests[1]);
  EXPECT_FALSE(members.Take(id, report, kAdmittedAt)) << "the same in another order";
  report.leaving = true;
  EXPECT_TRUE(members.Take(id, report, kAdmittedAt));
  EXPECT_EQ(members.Named("a")->member.capacity, 0U);
}

TEST(Membership, SilentMembersGoAndAPauseIsNoSilence) {
  Membership members;
  const MemberId a = Admitted(members, Of("a"));
  Admitted(members, Of("b"), kAdmittedAt + std::chrono::seconds(1));
  EXPECT_TRUE(members.RemoveSilent(kMemberSilence, kAdmittedAt + kMemberSilence).empty());
  members.Forgive(std::chrono::minutes(1));
  const MonotonicTime later = kAdmittedAt + std::chrono::minutes(1) + kMemberSilence;
  EXPECT_TRUE(members.RemoveSilent(kMemberSilence, later).empty());
  EXPECT_EQ(members.RemoveSilent(kMemberSilence, later + std::chrono::seconds(1)),
            std::vector<MemberId>{a});
  EXPECT_EQ(members.Named("a"), nullptr);
  EXPECT_NE(members.Named("b"), nullptr);
}

}  // namespace
}  // namespace optcache::coordination
