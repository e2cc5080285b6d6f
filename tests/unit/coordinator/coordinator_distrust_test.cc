// Nodes that say what cannot be, and a host that stood still.

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

std::string FirstNote(Scenario& scenario) {
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  return status.datasets[0].notes.empty() ? "" : status.datasets[0].notes[0];
}

TEST(Distrust, AKnownStreamIdUnderAnotherNameIsNotThatStream) {
  Scenario scenario;
  scenario.At("a", 0, 2);
  scenario.Second();
  ASSERT_EQ(scenario.dataset().streams.size(), 1U);
  const std::string name = scenario.stream().name;
  // Another job's rank 1 must not complete it.
  scenario.Stream("b").name = "speech/other/imagenet/train";
  scenario.At("b", 1, 2).position = 900;
  scenario.Second();
  ASSERT_EQ(scenario.dataset().streams.size(), 1U);
  EXPECT_EQ(scenario.stream().name, name);
  EXPECT_FALSE(scenario.stream().complete);
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{scenario.Id("a"), 0}));
  EXPECT_TRUE(FirstNote(scenario).starts_with("stream speech/other/imagenet/train was refused"))
      << FirstNote(scenario);
}

TEST(Distrust, AKnownStreamIdOfAnotherIncarnationOrManifestIsNotThatStream) {
  Scenario scenario;
  scenario.At("a", 0, 2);
  scenario.Second();
  scenario.Stream("b").incarnation = 2;
  scenario.At("b", 1, 2);
  scenario.Second();
  EXPECT_FALSE(scenario.stream().complete);
  scenario.Stream("b").incarnation = 1;
  scenario.Stream("b").dataset_key = 2;
  scenario.Second();
  EXPECT_FALSE(scenario.stream().complete);
  scenario.Stream("b").dataset_key = 1;
  scenario.Plan();
  EXPECT_TRUE(scenario.stream().complete);
}

TEST(Distrust, StreamsOfTooManyRanksAreRefused) {
  Scenario scenario;
  for (StreamId id = 1; id <= 3; ++id)
    scenario.At("a", 0, kMaxWorld, id);
  scenario.Second();
  EXPECT_EQ(scenario.dataset().streams.size(), kMaxRanksOfDataset / kMaxWorld);
  EXPECT_TRUE(FirstNote(scenario).starts_with("stream vision/job/imagenet/3 was refused"));
}

constexpr std::uint32_t kThird = kMaxRanksOfDataset / 3;

// What `scenario` publishes of its dataset.
std::size_t RanksOf(const Scenario& scenario) {
  std::size_t ranks = 0;
  for (const StreamState& stream : scenario.dataset().streams)
    ranks += stream.node_of_rank.size();
  return ranks;
}

TEST(Distrust, NextLivesTakeTheRoomThatTheirStreamsWillHave) {
  Scenario scenario;
  for (StreamId id = 1; id <= 3; ++id)
    scenario.At("a", 0, kThird, id);
  scenario.Second();
  EXPECT_EQ(RanksOf(scenario), 3 * kThird);
  for (StreamId id = 1; id <= 3; ++id)
    scenario.At("a", 0, kThird, id).recipe.world = kMaxWorld;
  scenario.Seconds(3);
  EXPECT_LE(RanksOf(scenario), kMaxRanksOfDataset);
  EXPECT_NE(FirstNote(scenario), "");
}

TEST(Distrust, AStreamHasRoomForItsNextLifeWhereItIsAsLarge) {
  for (const bool counted : {false, true}) {
    Scenario scenario;
    for (StreamId id = 1; id <= 2; ++id)
      scenario.At("a", 0, kMaxWorld, id).pass = 3;
    scenario.Second();
    ASSERT_EQ(RanksOf(scenario), kMaxRanksOfDataset);
    scenario.At("a", 0, kMaxWorld, 1).pass = 0;
    if (counted) {  // by its incarnation, as a JobSet does it
      scenario.Stream("a", 1).incarnation = 2;
      scenario.Stream("a", 1).id = 9;
    }
    scenario.Second();
    EXPECT_EQ(FirstNote(scenario), "");
    EXPECT_EQ(RanksOf(scenario), kMaxRanksOfDataset);
  }
}

TEST(Distrust, RanksOfAllDatasetsTogetherAreLimited) {
  std::vector<DatasetSpec> specs;
  for (int i = 0; i < 10; ++i) {
    specs.push_back(Scenario::Imagenet());
    specs.back().name = "vision/" + std::to_string(i);
  }
  Scenario scenario(specs);
  for (StreamId id = 0; id < 20; ++id) {
    scenario.At("a", 0, kMaxWorld, id + 1);
    scenario.Stream("a", id + 1).dataset = specs[id / 2].name;
  }
  scenario.Second();
  std::size_t ranks = 0;
  for (const DatasetState& dataset : scenario.state().datasets) {
    for (const StreamState& stream : dataset.streams)
      ranks += stream.node_of_rank.size();
  }
  EXPECT_EQ(ranks, kMaxRanks);
}

TEST(Distrust, AMemberIdBeyondReasonMakesNoIdComeTwice) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  scenario.Second();
  for (const MemberId id : {~MemberId{0}, ~MemberId{0} - 1, MemberId{1} << 31U}) {
    const Result<ReportAnswer> answer = scenario.coordinator().OnReport(
        {.node = "liar" + std::to_string(id), .incarnation = 1, .address = "l:1", .member = id},
        scenario.now());
    ASSERT_TRUE(answer);
    EXPECT_GT(answer->member, scenario.Id("a"));
    EXPECT_LT(answer->member, 10U);
  }
  EXPECT_GT(scenario.coordinator()
                .OnReport({.node = "new", .incarnation = 1, .address = "n:1"}, scenario.now())
                ->member,
            scenario.Id("a"));
}

TEST(Distrust, AVersionBeyondReasonDoesNotWrapAround) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  scenario.Second();
  ASSERT_TRUE(scenario.coordinator().OnReport({.node = "liar",
                                               .incarnation = 1,
                                               .address = "l:1",
                                               .applied = {.term = 0, .counter = ~0ULL}},
                                              scenario.now()));
  const Version before = scenario.state().version;
  scenario.Second();
  EXPECT_GT(scenario.state().version, before);
  const Version then = scenario.state().version;
  scenario.At("b", 0, 1, 9);
  scenario.Second();
  EXPECT_GT(scenario.state().version, then);
}

TEST(Pause, OfTheHostIsNobodysSilence) {
  Scenario scenario;
  scenario.At("a", 0, 1);
  scenario.Plan();
  ASSERT_EQ(scenario.state().members.size(), 1U);
  const Version before = scenario.state().version;
  scenario.Advance(std::chrono::hours(1));
  scenario.coordinator().OnPause(std::chrono::hours(1));
  scenario.Tick();
  EXPECT_EQ(scenario.state().version, before);
  EXPECT_EQ(scenario.state().members.size(), 1U);
  scenario.Advance(std::chrono::seconds(31));  // but then it is
  scenario.Tick();
  EXPECT_TRUE(scenario.state().members.empty());
}

}  // namespace
}  // namespace optcache::coordination
