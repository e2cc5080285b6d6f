// A coordinator that takes the place of another: it learns from the nodes before it speaks.

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr std::uint32_t kTerm = 5;

Scenario Successor() {
  return Scenario({Scenario::Imagenet()}, {.term = kTerm, .successor = true});
}

// A node that the predecessor has given `id` and a state.
Report& Known(Scenario& scenario, const std::string& node, MemberId id) {
  Report& report = scenario.Node(node);
  report.member = id;
  report.applied = {.term = kTerm - 1, .counter = 70};
  return report;
}

Result<ReportAnswer> Hear(Scenario& scenario, const Report& report) {
  return scenario.coordinator().OnReport(report, scenario.now());
}

TEST(Successor, PublishesNothingUntilTwoReportIntervalsAfterTheFirstReport) {
  Scenario scenario = Successor();
  scenario.Advance(
      std::chrono::minutes(1));  // nobody reports: it does not know that nobody is there
  scenario.coordinator().OnTick(scenario.now());
  ASSERT_TRUE(Hear(scenario, Known(scenario, "a", 7)));
  scenario.Advance(std::chrono::milliseconds(1999));
  scenario.coordinator().OnTick(scenario.now());
  EXPECT_TRUE(scenario.coordinator().learning());
  EXPECT_EQ(scenario.state().version, Version{});
  scenario.Advance(std::chrono::milliseconds(1));
  scenario.coordinator().OnTick(scenario.now());
  EXPECT_FALSE(scenario.coordinator().learning());
  EXPECT_TRUE(scenario.state().members.empty()) << "its host looks at what it has learned first";
  scenario.coordinator().OnTick(scenario.now());
  EXPECT_EQ(scenario.state().version, (Version{.term = kTerm, .counter = 1}));
}

TEST(Successor, MembersKeepTheirIds) {
  Scenario scenario = Successor();
  Known(scenario, "a", 7);
  Known(scenario, "b", 3);
  scenario.Seconds(3);
  ASSERT_EQ(scenario.state().members.size(), 2U);
  EXPECT_EQ(scenario.state().members[0].name, "b");
  EXPECT_EQ(scenario.state().members[0].id, 3U);
  EXPECT_EQ(scenario.state().members[1].id, 7U);
}

TEST(Successor, OneThatNobodyHasAdmittedWaitsAndGetsAnIdAboveAllReported) {
  Scenario scenario = Successor();
  const Report newcomer{.node = "new", .incarnation = 1, .address = "new:1"};
  EXPECT_EQ(Hear(scenario, newcomer).error().code(), Code::kUnavailable);
  Known(scenario, "a", 7);
  scenario.Seconds(2);
  ASSERT_FALSE(scenario.coordinator().learning());
  EXPECT_EQ(Hear(scenario, newcomer)->member, 8U);
}

TEST(Successor, TwoNodesWithOneIdAreToldApart) {
  Scenario scenario = Successor();
  ASSERT_TRUE(Hear(scenario, Known(scenario, "a", 7)));
  EXPECT_EQ(Hear(scenario, Known(scenario, "b", 7)).error().code(), Code::kUnavailable);
  scenario.Advance(std::chrono::seconds(2));
  scenario.coordinator().OnTick(scenario.now());
  EXPECT_EQ(Hear(scenario, Known(scenario, "b", 7))->member, 8U);
}

TEST(Successor, ALeaseThatWasMadeAnewDoesNotPutItBelowWhatNodesKnow) {
  Scenario scenario = Successor();
  Known(scenario, "a", 7).applied = {.term = kTerm + 3, .counter = 12};
  scenario.Seconds(3);
  EXPECT_EQ(scenario.state().version, (Version{.term = kTerm + 3, .counter = 13}));
  scenario.Node("a").applied = {.term = kTerm + 4, .counter = 1};
  EXPECT_EQ(Hear(scenario, scenario.Node("a")).error().code(), Code::kConflict);
}

TEST(Successor, KeepsTheCapacitiesWhileItAsksForInventories) {
  Scenario scenario = Successor();
  Known(scenario, "a", 7);
  scenario.At("a", 0, 1);
  scenario.Seconds(3);
  EXPECT_EQ(scenario.dataset().capacities, (std::vector<MemberCapacity>{{7, 300}}));
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  scenario.Answer();
  EXPECT_EQ(scenario.dataset().planned, scenario.state().version);
  EXPECT_EQ(scenario.dataset().planned.term, kTerm);
}

// Nodes answer each number once, and a new leader that began with 1 would get no answers for a
// while: it would take what they hold for nothing.
TEST(Successor, AsksByNumbersThatNodesHaveNotAnswered) {
  Scenario scenario = Successor();
  Known(scenario, "a", 7);
  scenario.At("a", 0, 1);
  scenario.Seconds(3);
  EXPECT_GT(scenario.dataset().inventory_wanted, RequestNumber{kTerm} << 32U);
}

// A stream in the middle of its eighth pass, as the first plan of a successor cuts it.
Cut CutOfRunning(bool planned_before) {
  Scenario scenario = Successor();
  Known(scenario, "a", 7);
  RankReport& rank = scenario.At("a", 0, 1);
  rank.pass = 7;
  rank.epoch = 7;
  rank.position = 400;
  scenario.Seconds(3);
  EXPECT_TRUE(scenario.coordinator()
                  .OnInventory({.node = "a",
                                .incarnation = 1,
                                .dataset = "vision/imagenet",
                                .request = scenario.dataset().inventory_wanted,
                                .positions = {{.stream = scenario.stream().id,
                                               .next = {.pass = 7, .position = 420},
                                               .planned = planned_before}}})
                  .ok());
  scenario.Tick();
  EXPECT_TRUE(scenario.stream().complete);
  return scenario.stream().cut;
}

TEST(Successor, CutsAStreamThatWasPlannedBeforeWhereItIs) {
  EXPECT_EQ(CutOfRunning(true), (Cut{.pass = 7, .position = 420}));
}

TEST(Successor, CutsAStreamThatNoPlanHasDecidedAboutAtItsBegin) {
  EXPECT_EQ(CutOfRunning(false), (Cut{.pass = 7, .position = 0}));
}

// --- Placement and manifests --------------------------------------------------------------------

Scenario PlacedOn(std::vector<std::string> nodes) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.placed = std::move(nodes);
  spec.namespaces = {"vision", "speech"};
  Scenario scenario({spec});
  for (const char* name : {"a", "b", "c", "d"})
    scenario.Node(name).manifest_url = std::string("https://") + name;
  scenario.Seconds(1);
  return scenario;
}

TEST(PlacedDataset, OnlyPlacedMembersGiveItMemory) {
  Scenario scenario = PlacedOn({"b", "d", "unknown"});
  EXPECT_EQ(scenario.dataset().capacities, (std::vector<MemberCapacity>{{2, 150}, {4, 150}}));
}

TEST(PlacedDataset, PlansWithoutTheAnswerOfAMemberThatHoldsNothingOfIt) {
  Scenario scenario = PlacedOn({"a"});
  scenario.At("b", 0, 1);
  scenario.Second();
  ASSERT_NE(scenario.dataset().inventory_wanted, 0U);
  ASSERT_TRUE(scenario.coordinator()
                  .OnInventory({.node = "a",
                                .incarnation = 1,
                                .dataset = "vision/imagenet",
                                .request = scenario.dataset().inventory_wanted})
                  .ok());
  scenario.Tick();
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
  EXPECT_TRUE(scenario.stream().complete);
}

TEST(PlacedDataset, StateSaysWhoMayUseItAndWhoHoldsTheManifest) {
  Scenario scenario = PlacedOn({"d"});
  EXPECT_EQ(scenario.dataset().namespaces, (std::vector<std::string>{"vision", "speech"}));
  EXPECT_EQ(scenario.dataset().manifest_members, (std::vector<MemberId>{1, 2, 4}));
  EXPECT_TRUE(scenario.dataset().manifest_holders.empty());
  EXPECT_EQ(scenario.state().members[3].manifest_url, "https://d");
  scenario.Node("c").manifests = {"ff", "aa"};
  scenario.Second();
  EXPECT_EQ(scenario.dataset().manifest_holders, (std::vector<MemberId>{3}));
  EXPECT_EQ(scenario.dataset().manifest_members, (std::vector<MemberId>{1, 2, 4}));
}

TEST(PlacedDataset, NodesWithoutAManifestServerAreNotAskedToHoldOne) {
  Scenario scenario;
  scenario.Node("a").manifests = {"aa"};
  scenario.Second();
  EXPECT_TRUE(scenario.dataset().manifest_members.empty());
  EXPECT_TRUE(scenario.dataset().manifest_holders.empty());
}

TEST(PlacedDataset, StatusCountsHoldersAndHowLongThereHaveBeenNone) {
  Scenario scenario = PlacedOn({"d"});
  scenario.Seconds(90);
  const auto missed = scenario.coordinator().Snapshot(scenario.now()).datasets[0];
  EXPECT_EQ(missed.manifest_holders, 0U);
  EXPECT_DOUBLE_EQ(missed.manifest_missed_seconds, 90);
  scenario.Node("a").manifests = {"aa"};
  scenario.Node("c").manifests = {"aa"};
  scenario.Second();
  const auto held = scenario.coordinator().Snapshot(scenario.now()).datasets[0];
  EXPECT_EQ(held.manifest_holders, 2U);
  EXPECT_EQ(held.manifest_missed_seconds, 0);
}

TEST(PlacedDataset, NoManifestIsMissedWhileNoMemberIsThere) {
  Scenario scenario;
  scenario.Seconds(200);
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].manifest_missed_seconds, 0);
}

TEST(PlacedDataset, StatusNamesItsReaders) {
  Scenario scenario = PlacedOn({"a"});
  scenario.At("c", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Second();
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].readers,
            (std::vector<std::string>{"b", "c"}));
}

TEST(PlacedDataset, StatusNamesWhatEachNodeHolds) {
  Scenario scenario = PlacedOn({"a", "b"});
  scenario.Node("a").datasets = {{.name = "vision/imagenet", .used_bytes = 70}};
  scenario.Second();
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].nodes,
            (std::vector<NodeShare>{{.name = "a", .used = 70}}));
}

}  // namespace
}  // namespace optcache::coordination
