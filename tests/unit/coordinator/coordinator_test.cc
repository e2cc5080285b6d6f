#include "coordinator/coordinator.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

// --- Members ------------------------------------------------------------------------------------

TEST(Coordinator, ANodeIsAMemberFromItsFirstReport) {
  Scenario scenario;
  scenario.Node("a");
  scenario.Second();
  ASSERT_EQ(scenario.state().members.size(), 1U);
  EXPECT_EQ(scenario.state().members[0],
            (Member{.id = 1, .name = "a", .address = "a:1", .capacity = 1000}));
  EXPECT_EQ(scenario.dataset().capacities, (std::vector<MemberCapacity>{{1, 300}}));
}

TEST(Coordinator, ASilentNodeIsGoneAfterThirtySecondsAndItsIdIsNotGivenAgain) {
  Scenario scenario;
  scenario.Node("a");
  scenario.Node("b");
  scenario.Second();
  scenario.Remove("a");
  scenario.Seconds(29);
  EXPECT_EQ(scenario.state().members.size(), 2U);
  scenario.Second();
  ASSERT_EQ(scenario.state().members.size(), 1U);
  EXPECT_EQ(scenario.state().members[0].name, "b");
  scenario.Node("a");
  scenario.Second();
  EXPECT_EQ(scenario.Id("a"), 3U);
}

TEST(Coordinator, ANodeThatWasStartedAgainIsAnotherMember) {
  Scenario scenario;
  scenario.Node("a");
  scenario.Second();
  scenario.Restart("a");
  scenario.Second();
  ASSERT_EQ(scenario.state().members.size(), 1U);
  EXPECT_EQ(scenario.state().members[0].id, 2U);
}

TEST(Coordinator, RefusesAReportOfAnEarlierLife) {
  Scenario scenario;
  scenario.Node("a").incarnation = 5;
  scenario.Second();
  Report old = scenario.Node("a");
  old.incarnation = 4;
  EXPECT_EQ(scenario.coordinator().OnReport(old, scenario.now()).error().code(), Code::kConflict);
}

TEST(Coordinator, RefusesANodeOfALaterTerm) {
  Scenario scenario;
  scenario.Node("a").applied = {.term = 1, .counter = 0};
  EXPECT_EQ(scenario.coordinator().OnReport(scenario.Node("a"), scenario.now()).error().code(),
            Code::kConflict);
  EXPECT_TRUE(scenario.state().members.empty());
}

TEST(Coordinator, GoesOnAboveWhatNodesHaveSeen) {
  Scenario scenario;
  scenario.Node("a").applied = {.term = 0, .counter = 700};
  scenario.Node("a").member = 41;
  scenario.Second();
  EXPECT_EQ(scenario.state().version, (Version{0, 701}));
  EXPECT_EQ(scenario.Id("a"), 42U);
}

TEST(Coordinator, PublishesNothingWhileNothingChanges) {
  Scenario scenario = TwoNodes();
  const Version version = scenario.state().version;
  scenario.Seconds(20);
  EXPECT_EQ(scenario.state().version, version);
}

// --- Streams and plans --------------------------------------------------------------------------

TEST(Coordinator, PublishesAStreamAtItsFirstRankAsIncomplete) {
  Scenario scenario;
  scenario.At("a", 0, 2);
  scenario.Second();
  ASSERT_EQ(scenario.dataset().streams.size(), 1U);
  EXPECT_FALSE(scenario.stream().complete);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 0}));
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
}

TEST(Coordinator, AsksForInventoriesWhenAllRanksAreKnownAndPlansWhenAllHaveAnswered) {
  Scenario scenario;
  scenario.At("a", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Hold("a", {3, 5});
  scenario.Hold("b", {4});
  scenario.Second();
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  EXPECT_FALSE(scenario.stream().complete);

  scenario.Answer();
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
  EXPECT_EQ(scenario.dataset().planned, scenario.state().version);
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}));
  const auto bytes = scenario.coordinator().BaseBytes(scenario.dataset().base_digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(DecodePlanBase(*bytes), (PlanBase{{{1, {3, 5}}, {2, {4}}}}));
}

TEST(Coordinator, PlansStreamsThatStartTogetherTogether) {
  Scenario scenario;
  scenario.At("a", 0, 1, 1);
  scenario.ReportOf("a");
  scenario.Advance(kGathering - std::chrono::milliseconds(1));
  scenario.At("a", 0, 1, 2);
  scenario.ReportOf("a");
  scenario.Advance(kGathering - std::chrono::milliseconds(1));
  scenario.Tick();
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
  scenario.Advance(std::chrono::milliseconds(1));
  scenario.Tick();
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  scenario.Answer();
  ASSERT_EQ(scenario.dataset().streams.size(), 2U);
  EXPECT_TRUE(scenario.dataset().streams[0].complete);
  EXPECT_TRUE(scenario.dataset().streams[1].complete);
}

TEST(Coordinator, PlansWithoutTheMembersThatDoNotAnswerInTwoSeconds) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  scenario.Second();
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  scenario.Advance(std::chrono::milliseconds(1999));
  scenario.Tick();
  EXPECT_FALSE(scenario.stream().complete);
  scenario.Advance(std::chrono::milliseconds(1));
  scenario.Tick();
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.dataset().base_digest, "");
}

TEST(Coordinator, ANewStreamIsCutAtItsStartAndARunningOneWhereItIs) {
  Scenario scenario = TwoNodes();
  EXPECT_EQ(scenario.stream().cut, (Cut{0, 0}));
  scenario.At("a", 0, 2).position = 400;
  scenario.At("b", 1, 2).position = 301;
  RankReport& second = scenario.At("a", 0, 1, 0x99);
  second.start = second.position = 50;
  scenario.Second();
  second.position = 80;
  scenario.Plan();
  ASSERT_EQ(scenario.dataset().streams.size(), 2U);
  EXPECT_EQ(scenario.dataset().streams[0].cut, (Cut{0, 400}));
  EXPECT_EQ(scenario.dataset().streams[1].cut, (Cut{0, 50}));
}

TEST(Coordinator, TheCutIsBehindNoPositionThatANodeHasDecided) {
  Scenario scenario = TwoNodes();
  scenario.Node("c");
  scenario.Second();
  const Inventory inventory{.node = "a",
                            .incarnation = 1,
                            .dataset = "vision/imagenet",
                            .request = scenario.dataset().inventory_wanted,
                            .positions = {{.stream = kTrain, .rank = 0, .next = {0, 620}}}};
  EXPECT_TRUE(scenario.coordinator().OnInventory(inventory).ok());
  scenario.Answer();
  EXPECT_EQ(scenario.stream().cut, (Cut{0, 620}));
}

TEST(Coordinator, PlansAgainWhenAMemberJoins) {
  Scenario scenario = TwoNodes();
  const Version before = scenario.dataset().planned;
  scenario.Node("c");
  scenario.Second();
  EXPECT_EQ(scenario.state().members.size(), 3U);
  EXPECT_EQ(scenario.dataset().planned, before);
  EXPECT_EQ(scenario.dataset().capacities.size(), 2U) << "the plan in force is left as it was";
  scenario.Answer();
  EXPECT_GT(scenario.dataset().planned, before);
  EXPECT_EQ(scenario.dataset().capacities.size(), 3U);
}

TEST(Coordinator, PlansAgainWhenAMemberIsGoneAndItsRankReadsThroughNoNode) {
  Scenario scenario = TwoNodes();
  scenario.Remove("b");
  scenario.Seconds(31);
  scenario.Answer();
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 0}));
}

TEST(Coordinator, PlansAgainWhenARankMovesToAnotherNode) {
  Scenario scenario = TwoNodes();
  scenario.Stream("b").ranks.clear();
  scenario.At("a", 1, 2);
  scenario.Seconds(4);
  scenario.Answer();
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 1}));
}

TEST(Coordinator, AStreamThatAllRanksHaveLeftIsGoneAtOnce) {
  Scenario scenario = TwoNodes();
  scenario.At("a", 0, 2).ended = true;
  scenario.Second();
  EXPECT_EQ(scenario.dataset().streams.size(), 1U);
  scenario.At("b", 1, 2).ended = true;
  scenario.Second();
  EXPECT_TRUE(scenario.dataset().streams.empty());
  EXPECT_EQ(scenario.dataset().planned, scenario.state().version);
  scenario.Seconds(5);
  EXPECT_TRUE(scenario.dataset().streams.empty()) << "late reports do not bring it back";
}

TEST(Coordinator, AJobThatComesBackOnOtherNodesBeginsAnew) {
  Scenario scenario = TwoNodes();
  for (const auto& [node, rank] : {std::pair("a", Rank{0}), std::pair("b", Rank{1})}) {
    RankReport& report = scenario.At(node, rank, 2);
    report.pass = 2;
    report.epoch = 2;
    report.ended = true;
  }
  scenario.Second();
  ASSERT_TRUE(scenario.dataset().streams.empty());
  for (const auto& [node, rank] : {std::pair("a", Rank{1}), std::pair("b", Rank{0})}) {
    RankReport& report = scenario.At(node, rank, 2);
    report.epoch = 2;
    report.recipe.passes = 1;
  }
  scenario.Plan();
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{2, 1}));
  EXPECT_EQ(scenario.stream().first_pass, 0U);
  EXPECT_EQ(scenario.stream().first_epoch, 2U);
  EXPECT_EQ(scenario.stream().cut, (Cut{0, 0}));
}

TEST(Coordinator, ALaterIncarnationTakesAStreamsPlace) {
  Scenario scenario = TwoNodes();
  StreamReport& restarted = scenario.Stream("a", 0x1234);
  restarted.name = scenario.Stream("a").name;
  restarted.incarnation = 2;
  scenario.At("a", 0, 1, 0x1234);
  scenario.Plan();
  ASSERT_EQ(scenario.dataset().streams.size(), 1U);
  EXPECT_EQ(scenario.stream().id, 0x1234U);
  scenario.Seconds(5);
  EXPECT_EQ(scenario.dataset().streams.size(), 1U) << "the earlier one does not come back";
}

TEST(Coordinator, AStreamThatIsNotHeardOfForTenMinutesHasEnded) {
  Scenario scenario = TwoNodes();
  scenario.Node("a").streams.clear();
  scenario.Node("b").streams.clear();
  scenario.Seconds(599);
  ASSERT_EQ(scenario.dataset().streams.size(), 1U);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}))
      << "a job that is being restarted keeps its places";
  scenario.Second();
  EXPECT_TRUE(scenario.dataset().streams.empty());
}

TEST(Coordinator, ARankThatIsNotHeardOfForThirtySecondsIsLost) {
  Scenario scenario = TwoNodes();
  scenario.Stream("b").ranks.clear();
  scenario.Seconds(30);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}));
  scenario.Plan();
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 0}));
}

TEST(Coordinator, PlansAgainWhenSetEpochIsForgotten) {
  Scenario scenario = TwoNodes();
  scenario.At("a", 0, 2).pass = 1;
  scenario.At("a", 0, 2).position = 2;
  scenario.Plan();
  EXPECT_EQ(scenario.stream().first_pass, 1U);
  EXPECT_EQ(scenario.stream().first_epoch, 0U);
  EXPECT_EQ(scenario.stream().epoch_step, 0U);
  EXPECT_EQ(scenario.stream().cut, (Cut{1, 2}));
}

TEST(Coordinator, DoesNotPlanAgainWhenAPassFollowsThePassBefore) {
  Scenario scenario = TwoNodes();
  const Version planned = scenario.dataset().planned;
  for (PassNumber pass = 1; pass < 5; ++pass) {
    for (const char* node : {"a", "b"}) {
      RankReport& rank = scenario.At(node, node[0] == 'a' ? 0 : 1, 2);
      rank.pass = pass;
      rank.epoch = pass;
      rank.last_pass_end = 998;
    }
    scenario.Plan();
  }
  EXPECT_EQ(scenario.dataset().planned, planned);
}

TEST(Coordinator, PlansPassesThatStopEarlyOnceForAll) {
  Scenario scenario = TwoNodes();
  const Version whole = scenario.dataset().planned;
  const auto read = [&](PassNumber pass, Position last_pass_end, std::uint64_t pass_reads) {
    for (const Rank rank : {0U, 1U}) {
      RankReport& report = scenario.At(rank == 0 ? "a" : "b", rank, 2);
      report.pass = pass;
      report.epoch = pass;
      report.position = rank;
      report.last_pass_end = last_pass_end;
      report.pass_reads = pass_reads;
    }
    scenario.Plan();
  };
  read(1, 1000, 125);
  const Version shorter = scenario.dataset().planned;
  EXPECT_GT(shorter, whole);
  EXPECT_EQ(scenario.stream().stops_at, 250U);
  EXPECT_EQ(scenario.stream().cut, (Cut{1, 1}));
  for (PassNumber pass = 2; pass < 6; ++pass)
    read(pass, 250, 125);
  EXPECT_EQ(scenario.dataset().planned, shorter);
  scenario.At("a", 0, 2).position = 400;
  scenario.At("a", 0, 2).pass_reads = 0;  // one goes on
  scenario.Plan();
  EXPECT_GT(scenario.dataset().planned, shorter);
  EXPECT_EQ(scenario.stream().stops_at, 0U);
  EXPECT_EQ(scenario.stream().cut, (Cut{5, 400}));
}

// One reads a quarter of each pass, the other on to the end; both at one speed.
TEST(Coordinator, PlansTwoStreamsOfWhichOneStopsEarly) {
  Scenario scenario = TwoNodes();
  scenario.At("a", 0, 1, 0x99).pass_reads = 250;
  scenario.Plan();
  const auto of = [&](StreamId id) -> const StreamState& {
    return *std::ranges::find(scenario.dataset().streams, id, &StreamState::id);
  };
  EXPECT_EQ(of(kTrain).stops_at, 0U);
  EXPECT_EQ(of(0x99).stops_at, 250U);
  const auto read_on = [&](Position count) {
    for (const Rank rank : {0U, 1U}) {
      RankReport& report = scenario.At(rank == 0 ? "a" : "b", rank, 2);
      report.position += count;
    }
    RankReport& alone = scenario.At("a", 0, 1, 0x99);
    alone.position += count;
    if (alone.position == 250) {
      alone.pass += 1;
      alone.epoch += 1;
      alone.position = 0;
      alone.last_pass_end = 250;
    }
    scenario.Plan();
  };
  const Version planned = scenario.dataset().planned;
  for (int second = 0; second < 36; ++second)
    read_on(25);
  EXPECT_EQ(scenario.dataset().planned, planned) << "neither passes nor rates have changed";

  scenario.At("a", 0, 1, 0x99).pass_reads = 0;  // it goes on
  read_on(25);
  EXPECT_GT(scenario.dataset().planned, planned);
  EXPECT_EQ(of(kTrain).stops_at, 0U);
  EXPECT_EQ(of(kTrain).cut, (Cut{0, 926}));
  EXPECT_EQ(of(0x99).stops_at, 0U);
  EXPECT_EQ(of(0x99).cut, (Cut{3, 175}));
}

TEST(Coordinator, PlansAgainWhenStreamsDriftApart) {
  Scenario scenario = TwoNodes();
  scenario.At("a", 0, 1, 0x99);
  scenario.Plan();
  const Version planned = scenario.dataset().planned;
  const auto read_on = [&](Position together, Position alone) {
    scenario.At("a", 0, 2).position += together;
    scenario.At("b", 1, 2).position += together;
    scenario.At("a", 0, 1, 0x99).position += alone;
    scenario.Plan();
  };
  for (int second = 0; second < 12; ++second)
    read_on(20, 17);  // of passes of 1000: by 36 apart in the end
  EXPECT_EQ(scenario.dataset().planned, planned);
  for (int second = 0; second < 8; ++second)
    read_on(20, 17);
  const Version again = scenario.dataset().planned;
  EXPECT_GT(again, planned);
  EXPECT_NEAR(scenario.dataset().streams[1].rate_permille, 850, 50);
  for (int second = 0; second < 20; ++second)
    read_on(20, 17);  // as planned now
  EXPECT_EQ(scenario.dataset().planned, again);
}

TEST(Coordinator, KeepsTheBaseBeforeForNodesThatStillFetchIt) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  std::vector<std::string> digests;
  for (SampleId id = 1; id <= 3; ++id) {
    scenario.Hold("a", {id});
    scenario.Node("node-" + std::to_string(id));
    scenario.Plan();
    digests.push_back(scenario.dataset().base_digest);
  }
  EXPECT_EQ(scenario.coordinator().BaseBytes(digests[0]), nullptr);
  EXPECT_NE(scenario.coordinator().BaseBytes(digests[1]), nullptr);
  EXPECT_NE(scenario.coordinator().BaseBytes(digests[2]), nullptr);
}

// --- What is not planned ------------------------------------------------------------------------

TEST(Coordinator, MakesNoPlanForOtherRetentions) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.retention = Retention::kLru;
  Scenario scenario({spec});
  scenario.At("a", 0, 1);
  scenario.Seconds(3);
  EXPECT_EQ(scenario.dataset().planned, Version{});
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
  EXPECT_FALSE(scenario.stream().complete);
}

TEST(Coordinator, RefusesAStreamOfAnotherManifestAndSaysSo) {
  Scenario scenario;
  scenario.Stream("a").dataset_key = 2;
  scenario.At("a", 0, 1);
  scenario.Second();
  EXPECT_TRUE(scenario.dataset().streams.empty());
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  ASSERT_EQ(status.datasets[0].notes.size(), 1U);
  EXPECT_TRUE(
      status.datasets[0].notes[0].starts_with("stream vision/job/imagenet/119 was refused"));
}

TEST(Coordinator, AChangeOfCapacityKeepsTheStreams) {
  Scenario scenario = TwoNodes();
  DatasetSpec spec = Scenario::Imagenet();
  spec.capacity = 400;
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Plan();
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.dataset().capacities, (std::vector<MemberCapacity>{{1, 200}, {2, 200}}));
}

TEST(Coordinator, AChangeOfObjectiveCountsFromThePlanThatIsMadeByIt) {
  Scenario scenario = TwoNodes();
  const Version before = scenario.dataset().planned;
  DatasetSpec spec = Scenario::Imagenet();
  spec.objective = Objective::kRequests;
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Second();
  EXPECT_EQ(scenario.dataset().objective, Objective::kBytes) << "the plan in force is as it was";
  EXPECT_EQ(scenario.dataset().planned, before);
  scenario.Answer();
  EXPECT_EQ(scenario.dataset().objective, Objective::kRequests);
  EXPECT_GT(scenario.dataset().planned, before);
}

// --- Inventories that are refused ---------------------------------------------------------------

TEST(Coordinator, RefusesInventoriesThatWereNotAskedFor) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  scenario.Second();
  Inventory inventory{.node = "a",
                      .incarnation = 1,
                      .dataset = "vision/imagenet",
                      .request = scenario.dataset().inventory_wanted,
                      .ids = {1000}};
  Coordinator& coordinator = scenario.coordinator();
  EXPECT_EQ(coordinator.OnInventory(inventory).code(), Code::kInvalidArgument);
  inventory.ids = {999};
  inventory.request += 1;
  EXPECT_EQ(coordinator.OnInventory(inventory).code(), Code::kConflict);
  inventory.incarnation = 2;
  EXPECT_EQ(coordinator.OnInventory(inventory).code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::coordination
