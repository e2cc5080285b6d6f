#include "coordination/status.h"

#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

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

TEST(Status, AddsUpWhatNodesSayWasSaved) {
  Scenario scenario;
  const auto tell = [&](std::uint64_t number, std::int64_t requests) {
    scenario.Node("a").savings = {
        .number = number,
        .datasets = {{.dataset = "vision/imagenet", .saved = {.requests = requests}},
                     {.dataset = "vision/gone", .saved = {.requests = 1}}}};
    scenario.Second();
  };
  tell(1, 5);
  scenario.Seconds(3);  // reports the same batch
  tell(2, 7);
  EXPECT_EQ(StatusOf(scenario).saved, (Savings{.requests = 12}));
  EXPECT_EQ(scenario.coordinator().CollectSavings()["vision/imagenet"], (Savings{.requests = 12}));
  scenario.Remove("a");
  scenario.Seconds(31);
  EXPECT_EQ(StatusOf(scenario).saved, (Savings{.requests = 12}))
      << "it stays when the node is gone";
}

TEST(ClusterStatus, AddsUpWhatMembersCount) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(30, 70, "")};
  scenario.Node("b").datasets = {Counted(10, 90, "")};
  scenario.Second();
  const DatasetStatus status = StatusOf(scenario);
  EXPECT_EQ(status.sum.hits, 40U);
  EXPECT_EQ(status.sum.misses, 160U);
  EXPECT_DOUBLE_EQ(status.sum.predicted_hit_ratio, 0.25);
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
  EXPECT_TRUE(StatusOf(scenario).nodes_that_differ.empty());
  scenario.Node("b").datasets = {Counted(1, 1, "bb")};
  scenario.Second();
  // Which of the two is wrong nobody can tell.
  EXPECT_EQ(StatusOf(scenario).nodes_that_differ, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(StatusOf(scenario).notes.back(),
            "these nodes have derived other plans than the rest from the same inputs: a, b");
  scenario.Node("c").datasets = {Counted(1, 1, "aa")};
  scenario.Second();
  EXPECT_EQ(StatusOf(scenario).nodes_that_differ, std::vector<std::string>{"b"});
}

TEST(ClusterStatus, ComparesDigestsOfTheSamePass) {
  Scenario scenario;
  scenario.Node("a").datasets = {Counted(1, 1, "aa")};
  scenario.Node("b").datasets = {Counted(1, 1, "bb")};
  scenario.Node("b").datasets.front().plan = "0.1 00000000000000a1 1";
  scenario.Second();
  EXPECT_TRUE(StatusOf(scenario).nodes_that_differ.empty());
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
  spec.note = "300 B of 900 B: no job reads it";
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

TEST(ClusterStatus, SaysHowTheOrderOfAStreamIsMade) {
  Scenario scenario;
  RankReport& rank = scenario.At("a", 0, 2);
  rank.recipe.order = "torch-random size=1000 seed=1 replacement=true";
  rank.epoch = 7;
  scenario.Second();
  const StreamStatus stream = StatusOf(scenario).streams[0];
  EXPECT_EQ(stream.recipe, "torch-random size=1000 seed=1 replacement=true");
  EXPECT_EQ(stream.epoch, 7U);
  EXPECT_EQ(stream.epoch_step, 1U);
  const ClusterStatus status = scenario.coordinator().Snapshot(scenario.now());
  EXPECT_EQ(ParseClusterStatus(ToJson(status))->datasets[0].streams[0], stream);
}

TEST(ClusterStatus, SaysWhenTheCapacityIsLargerThanTheDataset) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.capacity = 2000;
  Scenario scenario({spec});
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].notes,
            std::vector<std::string>{
                "the capacity (1.95 KiB) is larger than the dataset (1000 B): all of it is kept"});
}

DatasetReport OfStore(const StoreReport& store) {
  return {.name = "vision/imagenet", .manifest_digest = "aa", .store = store};
}

TEST(ClusterStatus, SaysToWhomTheStoreIsSilent) {
  Scenario scenario;
  scenario.Node("a").datasets = {
      OfStore({.answering = 1, .silent = 2, .silent_ms = 4000, .cause = "refused"})};
  scenario.Node("b").datasets = {OfStore({.silent = 1, .silent_ms = 70000, .cause = "no route"})};
  scenario.Node("c").datasets = {OfStore({.answering = 4})};
  scenario.Second();
  const auto seen = [&] { return scenario.coordinator().Snapshot(scenario.now()).datasets[0]; };
  StoreStatus store = seen().store;
  EXPECT_EQ(store.answering, 5U);
  EXPECT_EQ(store.silent, 3U);
  EXPECT_EQ(store.members_silent, 2U);
  EXPECT_EQ(store.cause, "no route");
  EXPECT_GE(store.silent_seconds, 70.0);
  EXPECT_LT(store.silent_seconds, 72.0);
  ASSERT_TRUE(store.quiet_seconds);
  EXPECT_LT(*store.quiet_seconds, 2.0);
  EXPECT_EQ(seen().notes.back(),
            "the store is silent: it answers nothing to 3 of 8 sidecars, on 2 machines, for more "
            "than 1 minute (last: no route); reads wait for it");

  scenario.Node("a").datasets = {OfStore({.answering = 3})};
  scenario.Remove("b");
  scenario.Seconds(40);
  store = seen().store;
  EXPECT_EQ(store.silent, 0U);
  EXPECT_EQ(store.answering, 7U);
  EXPECT_EQ(store.silent_seconds, 0);
  ASSERT_TRUE(store.quiet_seconds);
  EXPECT_GE(*store.quiet_seconds, 39.0);
  EXPECT_EQ(seen().notes, std::vector<std::string>{});
}

TEST(ClusterStatus, SaysWhichObjectHasChanged) {
  Scenario scenario;
  scenario.Node("a").datasets = {OfStore({.answering = 1})};
  scenario.Node("b").datasets = {OfStore({.answering = 1, .changed = "a.jpg"})};
  scenario.Second();
  const auto seen = [&] { return scenario.coordinator().Snapshot(scenario.now()).datasets[0]; };
  EXPECT_EQ(seen().store.changed, "a.jpg");
  EXPECT_EQ(seen().notes,
            std::vector<std::string>{"a.jpg is not the object that was indexed, and reads of it "
                                     "fail. Other objects may have changed, too"});
  scenario.Node("b").datasets = {OfStore({.answering = 1})};
  scenario.Second();
  EXPECT_EQ(seen().store.changed, "");
  EXPECT_EQ(seen().notes, std::vector<std::string>{});
}

TEST(ClusterStatus, WhatIsSaidOfAnEarlierManifestsStoreIsNotOfThisOne) {
  Scenario scenario;
  DatasetReport before = OfStore({.silent = 1, .silent_ms = 5000});
  before.manifest_digest = "00";
  scenario.Node("a").datasets = {before};
  scenario.Second();
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].store, StoreStatus{});
}

TEST(DescribeSilence, IsTheSameForAWhile) {
  const StoreStatus store{
      .answering = 0, .silent = 1, .members_silent = 1, .silent_seconds = 9.9, .cause = ""};
  EXPECT_EQ(DescribeSilence(store), "it answers nothing to 1 of 1 sidecar, on 1 machine");
  StoreStatus later = store;
  later.silent_seconds = 301;
  EXPECT_EQ(DescribeSilence(later),
            "it answers nothing to 1 of 1 sidecar, on 1 machine, for more than 5 minutes");
  StoreStatus last = store;
  last.silent_seconds = 899;
  EXPECT_EQ(DescribeSilence(last), DescribeSilence(later));
  last.silent_seconds = 1e300;
  EXPECT_EQ(DescribeSilence(last),
            "it answers nothing to 1 of 1 sidecar, on 1 machine, for more than 7 days");
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
  status.datasets[0].revision = "5f0c9a1b22";
  status.datasets[0].update_revision = "93be01d7ac";
  status.datasets[0].nodes[0].revision = "93be01d7ac";
  status.datasets[0].nodes[0].trials = {{.id = "t", .digest = "aa", .all = {.reads = 5}}};
  status.datasets[0].passes = {
      {.stream = "a/b/c/d", .length = 7, .complete = true, .sum = {.stream = 1, .hits = 3}}};
  status.datasets[0].store = {.answering = 1,
                              .silent = 2,
                              .members_silent = 1,
                              .silent_seconds = 12.5,
                              .cause = "refused",
                              .changed = "a.jpg",
                              .quiet_seconds = 0};
  EXPECT_EQ(ParseClusterStatus(ToJson(status)), status);
}

}  // namespace
}  // namespace optcache::coordination
