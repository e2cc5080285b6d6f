#include "cli/simulate/simulate_until.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

using simulation::Goal;
using simulation::PolicyKind;

std::string GoalError(std::string_view text) {
  const auto goal = ParseGoal(text);
  if (goal) return "no error";
  EXPECT_EQ(goal.error().code(), Code::kInvalidArgument);
  return goal.error().message();
}

UntilReport WaitingReport() {
  UntilReport report{.goal = {.of = Goal::Of::kWaiting, .at_most = 0.02},
                     .store_bandwidth = 0.7,
                     .epochs_left_out = 1,
                     .first_reads = 0,
                     .dataset_bytes = 1'000'000,
                     .lines = {}};
  report.lines.push_back(
      {.policy = PolicyKind::kOptimal,
       .found = {.least = {{.capacity = 0.286, .value = 0.0198}},
                 .measured = {{.capacity = 0, .value = 0.3},
                              {.capacity = 0.286, .value = 0.0198},
                              {.capacity = 1, .value = 0}}},
       .result = {.store_reads = 885, .store_bytes = 885'000, .hit_ratio = 0.286},
       .store_reads = 785});
  report.lines.push_back({.policy = PolicyKind::kNone,
                          .found = {.least = {}, .measured = {{.capacity = 1, .value = 0.3}}},
                          .result = {.store_reads = 1200, .store_bytes = 1'200'000},
                          .store_reads = 1100});
  return report;
}

UntilReport CostReport() {
  UntilReport report = WaitingReport();
  report.goal = {.of = Goal::Of::kCost, .at_most = 3, .price = {.per_request = 0.001}};
  report.epochs_left_out = 0;
  report.first_reads = 900;
  report.lines[0].found.measured[0].value = 5;
  report.lines[0].found.measured[1].value = 2.75;
  report.lines[0].found.least->value = 2.75;
  report.lines[1].found.measured[0].value = 5;
  return report;
}

TEST(ParseGoal, TakesSharesAndPercent) {
  EXPECT_DOUBLE_EQ(ParseGoal("waiting=2%")->at_most, 0.02);
  EXPECT_DOUBLE_EQ(ParseGoal("waiting=0.02")->at_most, 0.02);
  EXPECT_EQ(ParseGoal("waiting=0")->of, Goal::Of::kWaiting);
}

TEST(ParseGoal, TakesAnAmountOfMoney) {
  const auto goal = ParseGoal("cost=12.5");
  ASSERT_TRUE(goal.has_value());
  EXPECT_EQ(goal->of, Goal::Of::kCost);
  EXPECT_EQ(goal->at_most, 12.5);
}

TEST(ParseGoal, SaysWhatItTakes) {
  for (const char* const text :
       {"hits=2%", "", "2%", "waiting", "waiting=", "waiting=two", "waiting=2%%", "waiting=100%",
        "waiting=1", "waiting=-1%", "waiting=nan", "waiting=1e999"}) {
    EXPECT_NE(GoalError(text).find("waiting=2%"), std::string::npos) << text;
  }
  for (const char* const text : {"cost", "cost=", "cost=-1", "cost=1EUR", "cost=inf"})
    EXPECT_NE(GoalError(text).find("cost=12.5"), std::string::npos) << text;
}

TEST(SimulateUntil, TableHasARowAPolicyAndASentenceWhereTheGoalIsNotReached) {
  EXPECT_EQ(UntilAsTable(WaitingReport()),
            "POLICY   CAPACITY  BYTES    WAITING  HITS    STORE READS  STORE BYTES\n"
            "optimal  28.6 %    279 KiB  2.0 %    0.2860  885          864 KiB\n"
            "none     -         -        30.0 %   0.0000  1200         1.14 MiB\n"
            "none: a capacity of 100 % does not reach the goal: training still "
            "waits 30.0 %. Of its 1100 store reads after the first epoch, 0 are the first of their "
            "sample, which no cache spares.\n"
            "WAITING: share of an epoch's time in which training waits for a store that delivers "
            "0.7 of what the jobs could read; the first epoch is left out.\n"
            "CAPACITY: of all nodes together, the least that reaches the goal, in steps of 0.1 % "
            "of the dataset.\n");
}

TEST(SimulateUntil, TableDoesNotLeaveOutAFirstEpochThatCounts) {
  UntilReport report = WaitingReport();
  report.epochs_left_out = 0;
  EXPECT_EQ(UntilAsTable(report).find("first epoch"), std::string::npos);
}

TEST(SimulateUntil, TableSaysHowManyEpochsDoNotCountIfTheyAreMoreThanTheFirst) {
  UntilReport report = WaitingReport();
  report.epochs_left_out = 1.4999;
  const std::string table = UntilAsTable(report);
  EXPECT_TRUE(table.contains("; the first 1.5 epochs are left out.\n")) << table;
  EXPECT_TRUE(table.contains("1100 store reads after the first 1.5 epochs, 0 are")) << table;
  report.epochs_left_out = 1000;
  EXPECT_TRUE(UntilAsTable(report).contains("; the first 1000 epochs are left out.\n"));
}

TEST(SimulateUntil, TableOfACostNamesThePrices) {
  const std::string table = UntilAsTable(CostReport());
  EXPECT_NE(table.find("optimal  28.6 %    279 KiB  2.75"), std::string::npos) << table;
  EXPECT_NE(table.find("none: a capacity of 100 % does not reach the goal: the run "
                       "still costs 5.00. Of its 1100 store reads, 900 are"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("COST: of all requests at 0.001 each and all bytes at 0 a GiB"),
            std::string::npos)
      << table;
}

TEST(SimulateUntil, TableSaysWhereNoCacheIsNeeded) {
  UntilReport report = WaitingReport();
  report.lines[0].found = {.least = {{.capacity = 0, .value = 0.01}},
                           .measured = {{.capacity = 0, .value = 0.01},
                                        {.capacity = 0.5, .value = 0.05},
                                        {.capacity = 1, .value = 0}}};
  const std::string table = UntilAsTable(report);
  EXPECT_NE(table.find("optimal: the goal is reached without a cache.\n"), std::string::npos);
  EXPECT_EQ(table.find("more capacity"), std::string::npos) << "nothing is smaller than none";
}

TEST(SimulateUntil, TableSaysWhereMoreMayBeWorse) {
  UntilReport report = WaitingReport();
  report.lines[0].found = {.least = {{.capacity = 0.5, .value = 0.01}},
                           .measured = {{.capacity = 0, .value = 0.04},
                                        {.capacity = 0.4, .value = 0.05},
                                        {.capacity = 0.5, .value = 0.01}}};
  const std::string table = UntilAsTable(report);
  EXPECT_NE(table.find("optimal: more capacity does not always help this policy"),
            std::string::npos);
  EXPECT_EQ(table.find("none: more capacity"), std::string::npos);
}

TEST(SimulateUntil, JsonHasNullWhereTheGoalIsNotReached) {
  UntilReport report = WaitingReport();
  EXPECT_EQ(UntilAsJson(report), R"({
  "goal": {
    "waiting": 0.02,
    "storeBandwidth": 0.7
  },
  "datasetBytes": 1000000,
  "policies": {
    "optimal": {
      "capacity": 0.286,
      "capacityBytes": 286000,
      "waiting": 0.0198,
      "hitRatio": 0.286,
      "storeReads": 885,
      "storeBytes": 885000,
      "curve": [
        {
          "capacity": 0.0,
          "waiting": 0.3
        },
        {
          "capacity": 0.286,
          "waiting": 0.0198
        },
        {
          "capacity": 1.0,
          "waiting": 0.0
        }
      ]
    },
    "none": {
      "capacity": null,
      "capacityBytes": null,
      "waiting": 0.3,
      "hitRatio": 0.0,
      "storeReads": 1200,
      "storeBytes": 1200000,
      "curve": [
        {
          "capacity": 1.0,
          "waiting": 0.3
        }
      ]
    }
  }
}
)");
  const std::string cost = UntilAsJson(CostReport());
  EXPECT_NE(cost.find("\"cost\": 3.0,\n    \"perRequest\": 0.001,\n    \"perGiB\": 0.0"),
            std::string::npos)
      << cost;
}

TEST(SimulateUntil, CsvHasALineAPolicy) {
  EXPECT_EQ(UntilAsCsv(WaitingReport()),
            "policy,capacity,capacity_bytes,waiting,hit_ratio,store_reads,store_bytes\n"
            "optimal,0.286,286000,0.0198,0.286000,885,885000\n"
            "none,,,0.3,0.000000,1200,1200000\n");
}

// The axis of waiting ends at 30 %: the plot is 300 wide from 56, and 240 high down to 280.
TEST(SimulateUntil, PictureMarksTheLeastCapacity) {
  const std::string svg = DrawUntil(WaitingReport());
  EXPECT_NE(svg.find("<circle cx=\"141.8\" cy=\"264.2\""), std::string::npos) << svg;
  for (const char* const text : {"Waiting by capacity", ">optimal<", ">none<", ">goal<"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  EXPECT_EQ(svg.find("<circle", svg.find("<circle") + 1), std::string::npos);  // none reaches it
  EXPECT_NE(DrawUntil(CostReport()).find("Cost by capacity"), std::string::npos);
}

}  // namespace
}  // namespace optcache::cli
