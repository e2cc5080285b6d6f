#include "cache/directory.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::cache {
namespace {

using Kind = DirectoryAnswer::Kind;
using std::chrono::seconds;

class DirectoryTest : public testing::Test {
 protected:
  DirectoryAnswer Ask(SampleId id) { return directory_.Ask(id, true, kAsker, clock_.Now()); }

  static constexpr MemberId kAsker = 9;

  ManualClock clock_;
  Directory directory_{seconds(5), 100};
};

TEST_F(DirectoryTest, TheFirstAskerReadsAndTheOthersWait) {
  const auto first = directory_.Ask(1, true, kAsker, clock_.Now());
  EXPECT_EQ(first.kind, Kind::kLeased);
  EXPECT_EQ(first.lease, 100U);
  EXPECT_EQ(directory_.Ask(1, true, kAsker, clock_.Now()).kind, Kind::kWaiting);
  directory_.Gained(1, 7);
  const auto held = directory_.Ask(1, true, kAsker, clock_.Now());
  EXPECT_EQ(held.kind, Kind::kHeld);
  EXPECT_EQ(held.holder, 7U);
}

TEST_F(DirectoryTest, AnEndedLeaseGoesToTheNextAsker) {
  const auto first = directory_.Ask(1, true, kAsker, clock_.Now());
  directory_.EndLease(1, first.lease);
  EXPECT_EQ(directory_.Ask(1, true, kAsker, clock_.Now()).kind, Kind::kLeased);
}

TEST_F(DirectoryTest, TheLeasesOfAMemberThatIsGoneEndAndNoOthers) {
  const auto gone = directory_.Ask(1, true, 5, clock_.Now());
  const auto renewed = directory_.Ask(2, true, 5, clock_.Now());
  const auto other = directory_.Ask(3, true, 6, clock_.Now());
  const auto passed_on = directory_.Ask(4, true, 5, clock_.Now());
  directory_.EndLease(4, passed_on.lease);
  directory_.Ask(4, true, 6, clock_.Now());
  clock_.Advance(seconds(3));
  EXPECT_TRUE(directory_.Renew(2, renewed.lease, 5, clock_.Now()));
  EXPECT_EQ(directory_.EndLeasesOf(5), 2U);
  EXPECT_EQ(directory_.EndLeasesOf(5), 0U);
  EXPECT_FALSE(directory_.Renew(1, gone.lease, 5, clock_.Now()));
  EXPECT_EQ(Ask(1).kind, Kind::kLeased);
  EXPECT_EQ(Ask(2).kind, Kind::kLeased);
  EXPECT_EQ(Ask(3).kind, Kind::kWaiting);
  EXPECT_EQ(Ask(4).kind, Kind::kWaiting);
  EXPECT_TRUE(directory_.Renew(3, other.lease, 6, clock_.Now()));
}

TEST_F(DirectoryTest, ALeaseLivesOnlyWhileRenewed) {
  const auto first = directory_.Ask(1, true, kAsker, clock_.Now());
  clock_.Advance(seconds(4));
  EXPECT_TRUE(directory_.Renew(1, first.lease, kAsker, clock_.Now()));
  clock_.Advance(seconds(4));
  EXPECT_EQ(directory_.Ask(1, true, kAsker, clock_.Now()).kind, Kind::kWaiting);
  clock_.Advance(seconds(2));
  const auto second = directory_.Ask(1, true, kAsker, clock_.Now());
  EXPECT_EQ(second.kind, Kind::kLeased);
  EXPECT_FALSE(directory_.Renew(1, first.lease, kAsker, clock_.Now()));
  directory_.EndLease(1, first.lease);  // too late: the second one's goes on
  EXPECT_EQ(directory_.Ask(1, true, kAsker, clock_.Now()).kind, Kind::kWaiting);
}

TEST_F(DirectoryTest, AskingWithoutALeaseLeavesNoTrace) {
  EXPECT_EQ(directory_.Ask(1, false, kAsker, clock_.Now()).kind, Kind::kNobody);
  EXPECT_EQ(directory_.samples(), 0U);
}

TEST_F(DirectoryTest, ALateLossDoesNotHideTheNewHolder) {
  directory_.Gained(1, 7);
  directory_.Gained(1, 8);
  directory_.Lost(1, 7);
  EXPECT_EQ(directory_.Ask(1, true, kAsker, clock_.Now()).holder, 8U);
  directory_.Lost(1, 8);
  EXPECT_EQ(directory_.samples(), 0U);
}

TEST_F(DirectoryTest, TheCopyBeforeIsFoundWhenTheNewestIsLost) {
  directory_.Gained(7, 2);
  directory_.Gained(7, 3);
  directory_.Gained(7, 3);
  EXPECT_EQ(Ask(7).holder, 3U);
  directory_.Lost(7, 3);
  EXPECT_EQ(Ask(7).holder, 2U);
  directory_.Gained(7, 4);
  directory_.Lost(7, 2);
  EXPECT_EQ(Ask(7).holder, 4U);
  directory_.Gained(7, 5);
  directory_.ForgetMember(5);
  EXPECT_EQ(Ask(7).holder, 4U);
  directory_.Lost(7, 4);
  EXPECT_EQ(Ask(7).kind, Kind::kLeased);
}

TEST_F(DirectoryTest, ForgetsWhatAMemberHeldThatLeft) {
  directory_.Gained(1, 7);
  directory_.Gained(2, 8);
  directory_.ForgetMember(7);
  EXPECT_EQ(directory_.Ask(1, false, kAsker, clock_.Now()).kind, Kind::kNobody);
  EXPECT_EQ(directory_.Ask(2, false, kAsker, clock_.Now()).kind, Kind::kHeld);
}

TEST_F(DirectoryTest, KnowsThroughWhomLeasesWereGranted) {
  const auto lessees = [this] {
    std::vector<MemberId> members;
    directory_.VisitLessees([&members](MemberId member) { members.push_back(member); });
    return members;
  };
  EXPECT_TRUE(lessees().empty());
  const auto first = directory_.Ask(1, true, 7, clock_.Now());
  (void)directory_.Ask(2, true, 8, clock_.Now());
  EXPECT_EQ(lessees(), (std::vector<MemberId>{7, 8}));
  clock_.Advance(seconds(3));
  EXPECT_TRUE(directory_.Renew(1, first.lease, 7, clock_.Now()));
  clock_.Advance(seconds(3));
  directory_.Sweep(clock_.Now());
  EXPECT_EQ(lessees(), std::vector<MemberId>{7});
  clock_.Advance(seconds(3));
  directory_.Sweep(clock_.Now());
  EXPECT_TRUE(lessees().empty());
}

TEST_F(DirectoryTest, SweepDropsLeasesThatEnded) {
  (void)directory_.Ask(1, true, kAsker, clock_.Now());
  clock_.Advance(seconds(6));
  directory_.Sweep(clock_.Now());
  EXPECT_EQ(directory_.samples(), 0U);
}

}  // namespace
}  // namespace optcache::cache
