#include <gtest/gtest.h>

#include "coordinator/coordinator.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

// Two nodes whose ranks have read pass 0 and read pass 1 to `position`.
Scenario InPassOne(Position position) {
  Scenario scenario = TwoNodes();
  for (const char* node : {"a", "b"}) {
    const Rank rank = node == std::string("a") ? 0 : 1;
    RankReport& report = scenario.At(node, rank, 2);
    report.epoch = report.pass = 1;
    report.position = position + rank;
    report.last_pass_end = 1000 + rank;
    scenario.Node(node).datasets = {{.name = "vision/imagenet",
                                     .passes = {{.stream = kTrain, .pass = 0, .hits = 9},
                                                {.stream = kTrain, .pass = 1, .hits = 5}}}};
  }
  scenario.Second();
  return scenario;
}

std::vector<PassNumber> WholePasses(Scenario& scenario) {
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  std::vector<PassNumber> whole;
  for (const PassStatus& pass : status.datasets[0].passes) {
    if (pass.complete) whole.push_back(pass.sum.pass);
  }
  return whole;
}

void End(Scenario& scenario) {
  scenario.At("a", 0, 2).ended = true;
  scenario.At("b", 1, 2).ended = true;
  scenario.Second();
}

TEST(Passes, OfAStreamThatHasEndedAreThereForAWhile) {
  Scenario scenario = InPassOne(1000);
  EXPECT_EQ(WholePasses(scenario), std::vector<PassNumber>{0});
  End(scenario);
  EXPECT_TRUE(scenario.dataset().streams.empty());
  EXPECT_EQ(WholePasses(scenario), (std::vector<PassNumber>{0, 1}));
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].passes[1].sum.hits, 10U);
  scenario.Seconds(62);
  EXPECT_TRUE(WholePasses(scenario).empty());
}

TEST(Passes, ThatTheirRanksEndedInTheMiddleAreNotWhole) {
  Scenario scenario = InPassOne(600);
  End(scenario);
  EXPECT_EQ(WholePasses(scenario), std::vector<PassNumber>{0});
}

TEST(Passes, ThatARankLeftInTheMiddleAreNotWhole) {
  Scenario scenario = InPassOne(600);
  RankReport& report = scenario.At("a", 0, 2);
  report.epoch = report.pass = 2;
  report.last_pass_end = 700;
  scenario.At("b", 1, 2).epoch = scenario.At("b", 1, 2).pass = 2;
  scenario.Second();
  EXPECT_EQ(WholePasses(scenario), std::vector<PassNumber>{0});
}

TEST(Passes, ThatAStreamBeganInTheMiddleAreNotWhole) {
  Scenario scenario;
  for (const char* node : {"a", "b"}) {
    const Rank rank = node == std::string("a") ? 0 : 1;
    RankReport& report = scenario.At(node, rank, 2);
    report.epoch = report.pass = 3;
    report.start = report.position = 400 + rank;
    scenario.Node(node).datasets = {
        {.name = "vision/imagenet", .passes = {{.stream = kTrain, .pass = 3, .hits = 9}}}};
  }
  scenario.Plan();
  for (const char* node : {"a", "b"}) {
    RankReport& report = scenario.At(node, node == std::string("a") ? 0 : 1, 2);
    report.epoch = report.pass = 4;
    report.last_pass_end = 1000;
  }
  scenario.Second();
  EXPECT_TRUE(WholePasses(scenario).empty());
}

TEST(Passes, StreamsAreKnownWhenAllHaveHadTimeToBeHeard) {
  Scenario first;
  EXPECT_TRUE(first.coordinator().KnowsStreams(first.now()));
  Scenario successor({Scenario::Imagenet()}, {.term = 1, .successor = true});
  successor.Node("a").member = 1;
  EXPECT_FALSE(successor.coordinator().KnowsStreams(successor.now()));
  successor.Seconds(30);
  EXPECT_FALSE(successor.coordinator().KnowsStreams(successor.now()));
  successor.Seconds(2);
  EXPECT_TRUE(successor.coordinator().KnowsStreams(successor.now()));
}

// What a node has counted that is gone stays, but not for a job that begins again.
TEST(Passes, OfAnEarlierLifeAreForgotten) {
  Scenario scenario = InPassOne(600);
  scenario.Restart("b");
  scenario.Node("b").datasets.clear();
  scenario.Second();
  const auto hits = [&scenario] {
    std::uint64_t sum = 0;
    for (const auto& pass : scenario.coordinator().Snapshot(scenario.now()).datasets[0].passes)
      sum += pass.sum.hits;
    return sum;
  };
  EXPECT_EQ(hits(), 28U) << "of both nodes, in both passes";
  scenario.Node("a").datasets.clear();
  for (const auto& [node, rank] : {std::pair("a", Rank{0}), std::pair("b", Rank{1})}) {
    RankReport& report = scenario.At(node, rank, 2);
    report.pass = 0;
    report.epoch = report.position = report.last_pass_end = 0;
  }
  scenario.Seconds(2);
  EXPECT_EQ(hits(), 0U);
}

}  // namespace
}  // namespace optcache::coordination
