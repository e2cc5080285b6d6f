#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kName = "vision/imagenet";

DatasetSpec Limited(const StoreLimits& limits) {
  DatasetSpec spec = Scenario::Imagenet();
  spec.limits = limits;
  return spec;
}

class CoordinatorRatesTest : public testing::Test {
 protected:
  void Want(const std::string& node, const RateDemand& demand) {
    scenario_.Node(node).demands = {{.dataset = kName, .requests = demand, .bytes = demand}};
  }
  std::vector<DatasetShare> SharesOf(const std::string& node) {
    return scenario_.coordinator().OnReport(scenario_.Node(node), scenario_.now()).value().shares;
  }

  Scenario scenario_{{Limited({.requests = 200, .bytes = 5e7})}};
};

TEST_F(CoordinatorRatesTest, ANodeAloneHasTheWholeLimit) {
  Want("a", {.held_back = 3});
  scenario_.Seconds(3);
  EXPECT_THAT(SharesOf("a"),
              ElementsAre(DatasetShare{.dataset = kName, .requests = 200, .bytes = 5e7}));
}

TEST_F(CoordinatorRatesTest, TheLimitIsDividedByTheSidecarsThatAreHeldBack) {
  Want("a", {.held_back = 3});
  Want("b", {.held_back = 1});
  const Version before = scenario_.state().version;
  scenario_.Seconds(4);
  EXPECT_EQ(SharesOf("a")[0].requests, 150);
  EXPECT_EQ(SharesOf("b")[0].requests, 50);
  EXPECT_EQ(SharesOf("b")[0].bytes, 1.25e7);
  const Version settled = scenario_.state().version;
  EXPECT_GT(settled, before) << "of the members that have come";
  Want("b", {.askers = 1});
  scenario_.Seconds(5);
  EXPECT_EQ(SharesOf("b")[0].requests, 5);
  EXPECT_EQ(scenario_.state().version, settled) << "shares are in no state";
}

TEST_F(CoordinatorRatesTest, AMemberThatHasGoneLeavesItsShareToTheOthers) {
  Want("a", {.held_back = 1});
  Want("b", {.held_back = 1});
  scenario_.Seconds(4);
  scenario_.Remove("b");
  scenario_.Seconds(25);
  EXPECT_EQ(SharesOf("a")[0].requests, 100) << "its sidecars may still read";
  scenario_.Seconds(10);
  EXPECT_EQ(SharesOf("a")[0].requests, 200);
}

TEST_F(CoordinatorRatesTest, ADatasetWithoutALimitOrOneThatIsNotKnown) {
  Want("a", {.held_back = 1});
  scenario_.Node("a").demands.push_back({.dataset = "vision/none", .requests = {.held_back = 1}});
  scenario_.Seconds(3);
  scenario_.coordinator().SetDatasets({Limited({})}, scenario_.now());
  EXPECT_THAT(SharesOf("a"), ElementsAre(DatasetShare{.dataset = kName}));
  scenario_.coordinator().SetDatasets({}, scenario_.now());
  EXPECT_THAT(SharesOf("a"), IsEmpty());
}

TEST(CoordinatorRates, ASuccessorTellsNothingBeforeItKnowsWhoReads) {
  Scenario scenario({Limited({.requests = 200})}, {.term = 2, .successor = true});
  Report& report = scenario.Node("a");
  report.member = 7;
  report.demands = {{.dataset = kName, .requests = {.held_back = 1}}};
  const auto shares = [&] {
    return scenario.coordinator().OnReport(report, scenario.now()).value().shares;
  };
  EXPECT_THAT(shares(), IsEmpty());
  scenario.Seconds(2);
  ASSERT_FALSE(scenario.coordinator().learning());
  EXPECT_THAT(shares(), IsEmpty());
  scenario.Seconds(3);
  EXPECT_EQ(shares()[0].requests, 200);
}

}  // namespace
}  // namespace optcache::coordination
