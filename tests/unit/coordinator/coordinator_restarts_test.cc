// Jobs that are started again under the same incarnation.

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

// As TwoNodes, in the third epoch.
Scenario InTheThirdEpoch() {
  Scenario scenario = TwoNodes();
  for (PassNumber pass = 1; pass <= 2; ++pass) {
    for (const auto& [node, rank] : {std::pair("a", Rank{0}), std::pair("b", Rank{1})}) {
      scenario.At(node, rank, 2).pass = pass;
      scenario.At(node, rank, 2).epoch = pass;
      scenario.At(node, rank, 2).position = 100;
    }
    scenario.Second();
  }
  return scenario;
}

// Its process begins with pass 0 again, at the epoch of its checkpoint.
void StartAgain(Scenario& scenario, const std::string& node, Rank rank, std::uint64_t epoch,
                std::uint32_t world = 2) {
  std::vector<RankReport>& ranks = scenario.Stream(node).ranks;
  std::erase_if(ranks, [rank](const RankReport& report) { return report.rank == rank; });
  scenario.At(node, rank, world).epoch = epoch;
}

TEST(CoordinatorRestarts, AReplacedRankIsNoConflictAndTheOthersStayPlanned) {
  Scenario scenario = InTheThirdEpoch();
  StartAgain(scenario, "b", 1, 2);
  scenario.Plan();
  EXPECT_EQ(scenario.stream().conflict, "");
  EXPECT_EQ(scenario.stream().first_pass, 0U);
  EXPECT_EQ(scenario.stream().first_epoch, 0U);
  for (int second = 0; second < 40; ++second) {
    scenario.At("a", 0, 2).position += 10;
    scenario.Plan();
  }
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_TRUE(scenario.stream().recipe.known);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 0}));
  EXPECT_EQ(scenario.stream().cut.pass, 2U);
}

TEST(CoordinatorRestarts, WhenAllRanksAreStartedAgainTheirStreamBeginsAnew) {
  Scenario scenario = InTheThirdEpoch();
  StartAgain(scenario, "b", 1, 2);
  scenario.Seconds(5);
  EXPECT_EQ(scenario.stream().first_epoch, 0U);
  StartAgain(scenario, "a", 0, 2);
  scenario.Plan();
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_TRUE(scenario.stream().recipe.known);
  EXPECT_EQ(scenario.stream().first_pass, 0U);
  EXPECT_EQ(scenario.stream().first_epoch, 2U);
  EXPECT_EQ(scenario.stream().cut.pass, 0U);
  scenario.Seconds(60);
  EXPECT_EQ(scenario.dataset().streams.size(), 1U);
}

// As where its checkpoint is lost: nothing of what is planned differs.
TEST(CoordinatorRestarts, AJobThatBeginsFromNothingIsPlannedAgain) {
  Scenario scenario = InTheThirdEpoch();
  const StreamState before = scenario.stream();
  const Version planned = scenario.dataset().planned;
  StartAgain(scenario, "b", 1, 0);
  scenario.Second();
  EXPECT_EQ(scenario.stream().generation, before.generation);
  StartAgain(scenario, "a", 0, 0);
  scenario.Plan();
  EXPECT_GT(scenario.stream().generation, before.generation);
  EXPECT_GT(scenario.dataset().planned, planned);
  EXPECT_EQ(scenario.stream().cut, Cut());
}

TEST(CoordinatorRestarts, RanksThatChangePlacesWhenTheyAreStartedAgainBeginAnewToo) {
  Scenario scenario = InTheThirdEpoch();
  scenario.Stream("a").ranks.clear();
  scenario.Stream("b").ranks.clear();
  scenario.Seconds(10);
  StartAgain(scenario, "a", 1, 2);
  scenario.Seconds(5);
  StartAgain(scenario, "b", 0, 2);
  scenario.Plan();
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{2, 1}));
  EXPECT_EQ(scenario.stream().first_epoch, 2U);
}

// A job of fewer ranks than before, in its first epoch.
TEST(CoordinatorRestarts, AnotherWorldIsAnotherLife) {
  Scenario scenario = TwoNodes();
  scenario.Stream("b").ranks.clear();
  StartAgain(scenario, "a", 0, 0, 1);
  scenario.Plan();
  EXPECT_EQ(scenario.stream().conflict, "");
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1}));
  scenario.Node("b").streams.clear();
  StartAgain(scenario, "a", 0, 0, 2);
  scenario.At("b", 1, 2);
  scenario.Plan();
  EXPECT_EQ(scenario.stream().conflict, "");
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}));
}

// A loader that is attached anew for each epoch counts its passes from 0 each time.
TEST(CoordinatorRestarts, TheSamePassOfAnotherEpochIsAnotherLife) {
  Scenario scenario = TwoNodes();
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    scenario.At("a", 0, 2).epoch = epoch;
    scenario.Second();
    scenario.At("b", 1, 2).epoch = epoch;
    scenario.Plan();
    EXPECT_TRUE(scenario.stream().recipe.known) << scenario.stream().conflict;
    EXPECT_EQ(scenario.stream().first_epoch, epoch);
  }
}

TEST(CoordinatorRestarts, WhoSaysLateWhereARankWasDisturbsNobody) {
  Scenario scenario = InTheThirdEpoch();
  RankReport& late = scenario.At("c", 0, 2);
  late.pass = 1;
  late.epoch = 1;
  scenario.Stream("a").ranks.clear();
  scenario.Seconds(5);
  RankReport& back = scenario.At("a", 0, 2);
  back.pass = 2;
  back.epoch = 2;
  back.position = 300;
  scenario.Plan();
  scenario.Seconds(60);
  EXPECT_EQ(scenario.stream().conflict, "");
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}));
  EXPECT_EQ(scenario.stream().first_epoch, 0U);
}

TEST(CoordinatorRestarts, ANodeThatHasNotHeardYetHowFarARankIsStartsNothingAgain) {
  Scenario scenario = InTheThirdEpoch();
  const RankReport rank = scenario.At("b", 1, 2);
  scenario.Restart("b");
  scenario.At("b", 1, 2).started = false;
  scenario.Plan();
  scenario.At("b", 1, 2) = rank;
  scenario.Plan();
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 3}));
  EXPECT_EQ(scenario.stream().first_epoch, 0U);
  EXPECT_EQ(scenario.stream().conflict, "");
}

}  // namespace
}  // namespace optcache::coordination
