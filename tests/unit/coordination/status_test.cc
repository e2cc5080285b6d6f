#include "coordination/status.h"

#include <gtest/gtest.h>

#include "unit/coordination/scenario.h"

namespace optcache::coordination {
namespace {

DatasetReport Counted(std::uint64_t hits, std::uint64_t misses, std::string digest) {
  return {.name = "vision/imagenet",
          .plan = digest.empty() ? "" : "0.1 00000000000000a1 0",
          .plan_digest = std::move(digest),
          .used_bytes = 10,
          .hits = hits,
          .misses = misses,
          .predicted_hit_ratio = 0.25};
}

DatasetStatus StatusOf(Scenario& scenario) {
  return scenario.coordinator().Snapshot(scenario.now()).datasets.at(0);
}

TEST(ClusterStatus, AddsUpWhatMembersCount) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(30, 70, "")};
  scenario.Node("b").datasets = {Counted(10, 90, "")};
  scenario.Second();
  const DatasetStatus status = StatusOf(scenario);
  EXPECT_EQ(status.sum.hits, 40U);
  EXPECT_EQ(status.sum.misses, 160U);
  EXPECT_EQ(ObservedHitRatio(status.sum), 0.2);
  EXPECT_DOUBLE_EQ(status.sum.predicted_hit_ratio, 0.25);
  EXPECT_EQ(ObservedHitRatio({}), std::nullopt);
}

TEST(ClusterStatus, CountsOfAMemberThatIsGoneStay) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(30, 70, "")};
  scenario.Second();
  scenario.Restart("a");
  scenario.Node("a").datasets = {Counted(1, 2, "")};
  scenario.Second();
  EXPECT_EQ(StatusOf(scenario).sum.hits, 31U);
  EXPECT_EQ(StatusOf(scenario).sum.used_bytes, 10U);
}

TEST(ClusterStatus, ShowsPlansThatDiffer) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(1, 1, "aa")};
  scenario.Node("b").datasets = {Counted(1, 1, "aa")};
  scenario.Second();
  EXPECT_TRUE(StatusOf(scenario).digests_agree);
  scenario.Node("b").datasets = {Counted(1, 1, "bb")};
  scenario.Second();
  EXPECT_FALSE(StatusOf(scenario).digests_agree);
  EXPECT_EQ(StatusOf(scenario).notes.back(),
            "nodes have derived different plans from the same inputs");
}

TEST(ClusterStatus, ComparesDigestsOfTheSamePass) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(1, 1, "aa")};
  scenario.Node("b").datasets = {Counted(1, 1, "bb")};
  scenario.Node("b").datasets.front().plan = "0.1 00000000000000a1 1";
  scenario.Second();
  EXPECT_TRUE(StatusOf(scenario).digests_agree);
  EXPECT_TRUE(StatusOf(scenario).notes.empty());
}

TEST(ClusterStatus, SaysWhenTheCapacityCannotBeGiven) {
  Scenario scenario;
  scenario.Node("a").capacity = 150;
  scenario.Second();
  EXPECT_EQ(
      StatusOf(scenario).notes,
      std::vector<std::string>{"the members' memory gives 50 % of the capacity asked for (300 B)"});
}

TEST(ClusterStatus, SaysWhyTheCapacityIsWhatItIs) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.note = "300 B of 900 B: nobody reads it";
  Scenario scenario({spec});
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].notes,
            std::vector<std::string>{spec.note});
}

TEST(ClusterStatus, EachNodeHasTheShareOfThoseThatItsDatasetIsPlacedOn) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.placed = {"a", "c"};
  spec.shares = {250, 50};
  Scenario scenario({spec});
  for (const char* node : {"a", "b", "c"})
    scenario.Node(node);
  scenario.Second();
  std::map<std::string, ByteCount> capacities;
  for (const MemberCapacity& share : scenario.dataset().capacities) {
    const auto member = std::ranges::find(scenario.state().members, share.member, &Member::id);
    capacities[member->name] = share.bytes;
  }
  EXPECT_EQ(capacities, (std::map<std::string, ByteCount>{{"a", 250}, {"c", 50}}));
}

TEST(ClusterStatus, SaysWhichStreamsReadSamplesSeveralTimes) {
  Scenario scenario;
  RankReport& rank = scenario.At("a", 0, 2);
  rank.recipe.order = "torch-random size=1000 seed=1 replacement=true";
  scenario.Second();
  EXPECT_TRUE(StatusOf(scenario).streams[0].repeats);
  Scenario shuffled;
  shuffled.At("a", 0, 2);
  shuffled.Second();
  EXPECT_FALSE(StatusOf(shuffled).streams[0].repeats);
}

TEST(ClusterStatus, SaysWhenTheCapacityIsLargerThanTheDataset) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.capacity = 2000;
  Scenario scenario({spec});
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].notes,
            std::vector<std::string>{
                "the capacity (1.95 KiB) is larger than the dataset (1000 B): all of it is kept"});
}

TEST(ClusterStatus, ReadsTheJsonThatItWrites) {
  Scenario scenario;
  scenario.Node("a").capacity = 100;
  scenario.Node("a").datasets = {Counted(3, 4, "aa")};
  RankReport& rank = scenario.At("a", 0, 2);
  rank.position = 20;
  scenario.At("a", 1, 2).recipe.seed = 9;
  scenario.Node("a").metrics = "http://a:2/metrics";
  scenario.Plan();
  ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  EXPECT_EQ(status.members[0].metrics, "http://a:2/metrics");
  EXPECT_EQ(status.datasets[0].streams[0].conflict, "seed: 0 (rank 0), 9 (rank 1)");
  status.sidecars = {{.name = "s", .socket = "/run/s", .metrics = "http://a:3/metrics"}};
  EXPECT_EQ(ParseClusterStatus(ToJson(status)), status);
}

}  // namespace
}  // namespace optcache::coordination
