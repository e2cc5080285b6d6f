#include "dataset/capacity_goal.h"

#include <gtest/gtest.h>

namespace optcache::dataset {
namespace {

using Of = CapacityGoal::Of;

TEST(CapacityGoal, WaitingIsAShareOfTheTime) {
  EXPECT_EQ(*ParseWaitingGoal("2%"), (CapacityGoal{.of = Of::kWaiting, .at_most = 0.02}));
  EXPECT_EQ(*ParseWaitingGoal("0.5"), (CapacityGoal{.of = Of::kWaiting, .at_most = 0.5}));
  EXPECT_EQ(ParseWaitingGoal("0")->at_most, 0);
  for (const char* const text : {"", "%", "100%", "1", "-1%", "two", "nan", "2 %"}) {
    const Status error = ParseWaitingGoal(text).error();
    EXPECT_EQ(error.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(error.message().find("2% or 0.02"), std::string::npos) << error.message();
  }
}

TEST(CapacityGoal, CostIsAnAmountOfMoney) {
  EXPECT_EQ(*ParseCostGoal("12.5"), (CapacityGoal{.of = Of::kCost, .at_most = 12.5}));
  EXPECT_EQ(ParseCostGoal("0")->at_most, 0);
  for (const char* const text : {"", "-1", "5%", "inf"})
    EXPECT_EQ(ParseCostGoal(text).error().code(), Code::kInvalidArgument) << text;
}

}  // namespace
}  // namespace optcache::dataset
