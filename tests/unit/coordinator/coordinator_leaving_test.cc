#include <gtest/gtest.h>

#include "coordination/plan_base.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

// Nodes a and b, each with a rank; b holds a sample.
Scenario PlacedOnBoth(DatasetSpec& spec) {
  spec.placed = {{"a", "b"}};
  Scenario scenario({spec});
  scenario.At("a", 0, 2);
  scenario.At("b", 1, 2);
  scenario.Node("b").datasets = {
      {.name = spec.name, .samples = 1, .manifest_digest = spec.manifest_digest}};
  scenario.Plan();
  return scenario;
}

TEST(Coordinator, ANodeThatLeavesHasNoShareAndIsInTheNextBase) {
  Scenario scenario = TwoNodes();
  scenario.Hold("a", {1});
  scenario.Hold("b", {2, 3});
  scenario.Node("b").leaving = true;
  scenario.Second();
  EXPECT_TRUE(scenario.state().members[1].leaving);
  EXPECT_EQ(scenario.dataset().capacities.at(1).bytes, 150U);  // the plan in force is as it was
  EXPECT_NE(scenario.dataset().inventory_wanted, 0U);
  scenario.Answer();
  EXPECT_EQ(scenario.dataset().capacities,
            (std::vector<MemberCapacity>{{.member = 1, .bytes = 300}, {.member = 2, .bytes = 0}}));
  EXPECT_EQ(scenario.stream().node_of_rank, (std::vector<MemberId>{1, 2}));
  const auto bytes = scenario.coordinator().BaseBytes(scenario.dataset().base_digest);
  ASSERT_NE(bytes, nullptr);
  const Result<PlanBase> base = DecodePlanBase(*bytes);
  ASSERT_TRUE(base);
  ASSERT_EQ(base->members.size(), 2U);
  EXPECT_EQ(base->members[1].ids, (std::vector<SampleId>{2, 3}));
}

TEST(Coordinator, ANodeThatLeavesIsInTheNextBaseThoughTheDatasetIsPlacedElsewhereNow) {
  DatasetSpec spec = Scenario::Imagenet();
  Scenario scenario = PlacedOnBoth(spec);
  scenario.Node("b").leaving = true;
  spec.placed = {{"a"}};
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Hold("b", {2});
  scenario.Plan();
  EXPECT_EQ(scenario.dataset().capacities,
            (std::vector<MemberCapacity>{{.member = 1, .bytes = 300}, {.member = 2, .bytes = 0}}));
  const auto bytes = scenario.coordinator().BaseBytes(scenario.dataset().base_digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(DecodePlanBase(*bytes)->members.back().member, 2U);
}

TEST(Coordinator, ANodeOnWhichADatasetIsPlacedNoMoreIsInItsPlansUntilItHoldsNothing) {
  DatasetSpec spec = Scenario::Imagenet();
  Scenario scenario = PlacedOnBoth(spec);
  auto& served = scenario.Node("b").datasets;
  spec.placed = {{"a"}};
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Hold("b", {2});
  scenario.Plan();
  EXPECT_EQ(scenario.dataset().capacities,
            (std::vector<MemberCapacity>{{.member = 1, .bytes = 300},
                                         {.member = 2, .bytes = 0, .departs = true}}));
  const auto bytes = scenario.coordinator().BaseBytes(scenario.dataset().base_digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(DecodePlanBase(*bytes)->members.back().ids, std::vector<SampleId>{2});
  // That is no reason for a plan.
  served[0].samples = 0;
  scenario.Second();
  scenario.Second();
  EXPECT_EQ(scenario.dataset().inventory_wanted, 0U);
  EXPECT_EQ(scenario.dataset().capacities.size(), 2U);
  spec.capacity = 200;
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Plan();
  const std::vector<MemberCapacity> alone = {{.member = 1, .bytes = 200}};
  EXPECT_EQ(scenario.dataset().capacities, alone);
  // What is read there on its way to others is no reason to come back.
  served[0].samples = 1;
  scenario.coordinator().SetDatasets({spec}, scenario.now());
  scenario.Plan();
  EXPECT_EQ(scenario.dataset().capacities, alone);
}

TEST(Coordinator, ANodeThatHasLeftIsForgotten) {
  Scenario scenario = TwoNodes();
  scenario.Node("b").leaving = true;
  scenario.Plan();
  scenario.Remove("b");
  scenario.Seconds(31);
  scenario.Answer();
  EXPECT_EQ(scenario.state().members.size(), 1U);
  EXPECT_EQ(scenario.dataset().capacities,
            (std::vector<MemberCapacity>{{.member = 1, .bytes = 300}}));
}

TEST(Coordinator, ANodeThatLeavesIsNotAskedToHoldManifests) {
  Scenario scenario;
  for (const char* node : {"a", "b"}) {
    scenario.Node(node).manifest_url = std::string("https://") + node;
    scenario.Node(node).manifests = {"aa"};
  }
  scenario.Second();
  EXPECT_EQ(scenario.dataset().manifest_members, (std::vector<MemberId>{1, 2}));
  scenario.Node("b").leaving = true;
  scenario.Second();
  EXPECT_EQ(scenario.dataset().manifest_members, std::vector<MemberId>{1});
}

}  // namespace
}  // namespace optcache::coordination
