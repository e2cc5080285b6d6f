#include <gtest/gtest.h>

#include "coordinator/coordinator.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr const char* kOwn = "5f0c9a1b22";
constexpr const char* kUpdate = "93be01d7ac";

// Pin is in force.
DatasetSpec Pinned() {
  DatasetSpec spec = Scenario::Imagenet();
  spec.revision = kOwn;
  spec.retention = Retention::kPin;
  return spec;
}

RevisionSpec Optimal() {
  return {.name = kUpdate, .retention = Retention::kOptimal};
}

// Two nodes with a rank each, which read under Pin.
Scenario TwoPinned() {
  Scenario scenario({Pinned()});
  scenario.At("a", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Seconds(2);
  return scenario;
}

void Want(Scenario& scenario, DatasetSpec spec) {
  scenario.coordinator().SetDatasets({std::move(spec)}, scenario.now());
}

DatasetSpec WithUpdate(std::vector<std::string> nodes) {
  DatasetSpec spec = Pinned();
  spec.update = {.revision = Optimal(), .nodes = std::move(nodes)};
  return spec;
}

const RevisionState& OfMember(const Scenario& scenario, MemberId member) {
  static RevisionState followed;
  const DatasetState& state = scenario.dataset();
  const Assignment assignment{
      .own = {.name = state.revision, .retention = state.retention, .objective = state.objective},
      .update = state.update};
  followed = FollowedBy(member, assignment);
  return followed;
}

TEST(Revisions, ATrialIsPublishedWithAFreshInventoryAndChangesNothingElse) {
  Scenario scenario = TwoPinned();
  EXPECT_EQ(scenario.dataset().planned, Version{});
  scenario.Hold("a", {1, 2, 3});
  DatasetSpec spec = Pinned();
  spec.trials = {{.id = "t", .revision = Optimal()}};
  Want(scenario, spec);
  scenario.Tick();
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  EXPECT_TRUE(scenario.dataset().trials.empty()) << "its base is not known yet";
  scenario.Answer();
  ASSERT_EQ(scenario.dataset().trials.size(), 1U);
  EXPECT_EQ(scenario.dataset().trials[0].revision.retention, Retention::kOptimal);
  EXPECT_FALSE(scenario.dataset().base_digest.empty());
  EXPECT_EQ(scenario.dataset().streams.size(), 1U);
  EXPECT_TRUE(scenario.stream().complete);
  EXPECT_EQ(scenario.dataset().retention, Retention::kPin);
  EXPECT_FALSE(scenario.dataset().update);

  const Version planned = scenario.dataset().planned;
  scenario.Seconds(5);
  EXPECT_EQ(scenario.dataset().planned, planned);
}

TEST(Revisions, ATrialWithoutStreamsNeedsNoInventory) {
  DatasetSpec spec = Pinned();
  spec.trials = {{.id = "t", .revision = Optimal()}};
  spec.trials[0].revision.jobs = {{.job = "later", .recipe = {.seed = 3, .world = 3, .passes = 9}}};
  Scenario scenario({spec});
  scenario.Node("a");
  scenario.Node("b");
  scenario.Second();
  ASSERT_EQ(scenario.dataset().trials.size(), 1U);
  ASSERT_EQ(scenario.dataset().trials[0].expected.size(), 1U);
  const StreamState& expected = scenario.dataset().trials[0].expected[0];
  EXPECT_EQ(expected.name, "vision/later/imagenet/expected");
  EXPECT_EQ(expected.recipe.size, 1000U) << "of the manifest";
  EXPECT_EQ(expected.node_of_rank,
            (std::vector<MemberId>{scenario.Id("a"), scenario.Id("b"), scenario.Id("a")}));
}

TEST(Revisions, TrialsThatAreComparedExpectTheSameJobs) {
  DatasetSpec spec = Pinned();
  spec.trials = {{.id = "update", .revision = Optimal()}, {.id = "current", .revision = Optimal()}};
  spec.trials[0].revision.jobs = {{.job = "later", .recipe = {.seed = 3, .world = 2}},
                                  {.job = "both", .recipe = {.seed = 4, .world = 2}}};
  spec.trials[1].revision.jobs = {{.job = "both", .recipe = {.seed = 5, .world = 2}}};
  Scenario scenario({spec});
  scenario.Node("a");
  scenario.Second();
  ASSERT_EQ(scenario.dataset().trials.size(), 2U);
  const auto seeds = [&](std::size_t trial) {
    std::set<std::int64_t> list;
    for (const StreamState& stream : scenario.dataset().trials[trial].expected)
      list.insert(stream.recipe.seed);
    return list;
  };
  EXPECT_EQ(seeds(0), (std::set<std::int64_t>{3, 4}));
  EXPECT_EQ(seeds(1), (std::set<std::int64_t>{3, 5})) << "of its own where it has one";
}

TEST(Revisions, TrialsThatAreNotComparedExpectNoJobsOfEachOther) {
  DatasetSpec spec = Pinned();
  spec.trials = {{.id = "current", .revision = Optimal()},
                 {.id = "present", .revision = Optimal(), .on_request = true},
                 {.id = "predict", .revision = Optimal(), .on_request = true}};
  spec.trials[2].revision.jobs = {{.job = "asked", .recipe = {.seed = 3, .world = 2}}};
  Scenario scenario({spec});
  scenario.Node("a");
  scenario.Second();
  ASSERT_EQ(scenario.dataset().trials.size(), 3U);
  EXPECT_TRUE(scenario.dataset().trials[0].expected.empty());
  EXPECT_EQ(scenario.dataset().trials[1].expected.size(), 1U);
  EXPECT_EQ(scenario.dataset().trials[2].expected.size(), 1U);
}

TEST(Revisions, NodesGoOverTogetherWithABaseOfThatMoment) {
  Scenario scenario = TwoPinned();
  Want(scenario, WithUpdate({"a"}));
  scenario.Hold("b", {7});
  scenario.Tick();
  scenario.Answer();
  EXPECT_EQ(OfMember(scenario, scenario.Id("a")).retention, Retention::kOptimal);
  EXPECT_EQ(OfMember(scenario, scenario.Id("b")).retention, Retention::kPin);
  const Version first = scenario.dataset().planned;
  EXPECT_NE(first, Version{});

  Want(scenario, WithUpdate({"a", "b"}));
  scenario.Tick();
  EXPECT_EQ(OfMember(scenario, scenario.Id("b")).retention, Retention::kPin)
      << "as long as inventories are collected";
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  scenario.Answer();
  EXPECT_EQ(OfMember(scenario, scenario.Id("b")).retention, Retention::kOptimal);
  EXPECT_GT(scenario.dataset().planned, first);
}

TEST(Revisions, AnUpdateThatAllFollowBecomesTheDatasetsOwnWithoutAnotherPlan) {
  Scenario scenario = TwoPinned();
  Want(scenario, WithUpdate({"a", "b"}));
  scenario.Tick();
  scenario.Answer();
  const Version planned = scenario.dataset().planned;
  DatasetSpec spec = Pinned();
  spec.revision = kUpdate;
  spec.retention = Retention::kOptimal;
  Want(scenario, spec);
  scenario.Seconds(3);
  EXPECT_EQ(scenario.dataset().revision, kUpdate);
  EXPECT_EQ(scenario.dataset().retention, Retention::kOptimal);
  EXPECT_FALSE(scenario.dataset().update);
  EXPECT_EQ(scenario.dataset().planned, planned);
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
}

TEST(Revisions, WithdrawnAnUpdateEndsForAllAtOnce) {
  Scenario scenario = TwoPinned();
  Want(scenario, WithUpdate({"a", "b"}));
  scenario.Tick();
  scenario.Answer();
  Want(scenario, Pinned());
  scenario.Tick();
  scenario.Answer();
  EXPECT_EQ(scenario.dataset().retention, Retention::kPin);
  EXPECT_FALSE(scenario.dataset().update);
}

TEST(Revisions, NodesThatAreNoMembersAreLeftOut) {
  Scenario scenario = TwoPinned();
  Want(scenario, WithUpdate({"b", "nobody"}));
  scenario.Tick();
  scenario.Answer();
  ASSERT_TRUE(scenario.dataset().update);
  EXPECT_EQ(scenario.dataset().update->members, std::vector<MemberId>{scenario.Id("b")});
  Want(scenario, WithUpdate({"nobody"}));
  scenario.Tick();
  scenario.Answer();
  EXPECT_FALSE(scenario.dataset().update);
}

// A stream whose ranks do not say in what order they read.
Scenario WithoutOrder(const DatasetSpec& spec) {
  Scenario scenario({spec});
  for (const char* node : {"a", "b"}) {
    RankReport& rank = scenario.At(node, node == std::string("a") ? 0 : 1, 2);
    rank.recipe.known = false;
    rank.order_known = false;
  }
  scenario.Plan();
  return scenario;
}

TEST(Revisions, AJobsOrderIsThatOfTheRevisionWhereItAnnouncesNone) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.jobs = {{.job = "job", .recipe = {.seed = 5, .world = 2, .passes = 9}}};
  Scenario scenario = WithoutOrder(spec);
  EXPECT_TRUE(scenario.stream().recipe.known);
  EXPECT_EQ(scenario.stream().recipe.seed, 5);
  EXPECT_EQ(scenario.stream().recipe.size, 1000U);
  const auto is_known = [&] {
    return scenario.coordinator().Snapshot(scenario.now()).datasets[0].streams[0].order_known;
  };
  EXPECT_TRUE(is_known());

  spec.jobs[0].recipe.world = 4;
  Want(scenario, spec);
  scenario.Plan();
  EXPECT_FALSE(scenario.stream().recipe.known) << "of another world";
  EXPECT_FALSE(is_known());
}

TEST(Revisions, WhatAJobAnnouncesCountsMore) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.jobs = {{.job = "job", .recipe = {.seed = 5, .world = 2}}};
  Scenario scenario({spec});
  scenario.At("a", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Plan();
  EXPECT_EQ(scenario.stream().recipe.seed, 0);
}

TEST(Revisions, AnUpdateMayGiveAJobAnotherOrder) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.update = {.revision = {.name = kUpdate}, .nodes = {"a"}};
  spec.update->revision.jobs = {{.job = "job", .recipe = {.seed = 5, .world = 2}}};
  Scenario scenario = WithoutOrder(spec);
  EXPECT_FALSE(scenario.stream().recipe.known);
  ASSERT_TRUE(scenario.dataset().update);
  ASSERT_EQ(scenario.dataset().update->revision.recipes.size(), 1U);
  EXPECT_EQ(scenario.dataset().update->revision.recipes[0].recipe.seed, 5);
  EXPECT_EQ(scenario.dataset().update->revision.recipes[0].stream, kTrain);
}

TEST(Revisions, PassesAreSummedOverMembersAlsoThoseThatHaveGone) {
  Scenario scenario = TwoNodes();
  scenario.Node("a").datasets = {
      {.name = "vision/imagenet",
       .passes = {{.stream = kTrain, .pass = 0, .hits = 3, .misses = 2}}}};
  scenario.Node("b").datasets = {
      {.name = "vision/imagenet",
       .passes = {{.stream = kTrain, .pass = 0, .hits = 4}, {.stream = 99, .pass = 0, .hits = 9}}}};
  scenario.Second();
  const auto passes = [&] {
    return scenario.coordinator().Snapshot(scenario.now()).datasets[0].passes;
  };
  ASSERT_EQ(passes().size(), 1U) << "of streams that read";
  EXPECT_EQ(passes()[0].stream, "vision/job/imagenet/119");
  EXPECT_EQ(passes()[0].length, 1000U);
  EXPECT_EQ(passes()[0].sum.hits, 7U);
  EXPECT_EQ(passes()[0].sum.misses, 2U);
  EXPECT_FALSE(passes()[0].complete);

  scenario.At("a", 0, 2).pass = 1;
  scenario.Second();
  EXPECT_FALSE(passes()[0].complete) << "rank 1 reads it";
  scenario.At("b", 1, 2).pass = 1;
  scenario.Second();
  EXPECT_TRUE(passes()[0].complete);

  scenario.Remove("b");
  scenario.Seconds(31);
  EXPECT_EQ(passes()[0].sum.hits, 7U);
}

TEST(Revisions, OnlyNodesOfOneRevisionHaveToAgreeOnAPlan) {
  Scenario scenario = TwoNodes();
  for (const char* node : {"a", "b"}) {
    scenario.Node(node).datasets = {{.name = "vision/imagenet", .plan = "0.2 77 0"}};
    scenario.Node(node).datasets[0].plan_digest = node;
    scenario.Node(node).datasets[0].revision = node;
  }
  scenario.Second();
  const DatasetStatus status = scenario.coordinator().Snapshot(scenario.now()).datasets[0];
  EXPECT_TRUE(status.nodes_that_differ.empty());
  ASSERT_EQ(status.nodes.size(), 2U);
  EXPECT_EQ(status.nodes[1].revision, "b");
  scenario.Node("a").datasets[0].revision = "b";
  scenario.Second();
  EXPECT_EQ(scenario.coordinator().Snapshot(scenario.now()).datasets[0].nodes_that_differ,
            (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace optcache::coordination
