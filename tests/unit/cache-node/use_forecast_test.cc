#include "cache-node/retention/use_forecast.h"

#include <gtest/gtest.h>

#include "cache/tiering.h"

namespace optcache::node {
namespace {

TEST(UseForecast, CountsTheReadsBefore) {
  UseForecast uses;
  uses.Add(7, 0, 4, FirstPositions({3, 1, 0, 2}, 5));
  uses.Add(7, 1, 4, FirstPositions({2, 3, 1, 0}, 5));
  EXPECT_EQ(uses.NextUse(1), 1.0);
  EXPECT_EQ(uses.NextUse(4), cache::kUseUnknown);
  EXPECT_EQ(uses.NextUse(99), cache::kUseUnknown);
  uses.OnRead(7, 0, 2);
  EXPECT_EQ(uses.NextUse(2), 1.0);  // at position 3
  EXPECT_EQ(uses.NextUse(3), 3.0);  // it was read: at position 1 of the next pass
  EXPECT_EQ(uses.NextUse(0), 5.0);
  uses.OnRead(7, 1, 0);
  EXPECT_EQ(uses.NextUse(0), 3.0);
  EXPECT_EQ(uses.NextUse(2), cache::kUseUnknown);
  uses.OnRead(7, 0, 3);  // of a rank that is behind
  EXPECT_EQ(uses.NextUse(0), 3.0);
}

TEST(UseForecast, TheStreamThatReadsItSoonestCounts) {
  UseForecast uses;
  uses.Add(1, 0, 3, FirstPositions({0, 1, 2}, 3));
  uses.Add(2, 0, 3, FirstPositions({2, 1, 0}, 3));
  EXPECT_EQ(uses.NextUse(1), 1.0);
  uses.OnRead(2, 0, 0);
  EXPECT_EQ(uses.NextUse(2), 2.0);
  uses.ForgetStream(1);
  EXPECT_EQ(uses.NextUse(2), cache::kUseUnknown);
  uses.ForgetAll();
  EXPECT_TRUE(uses.empty());
}

TEST(UseForecast, APassMayReadASampleTwiceOrNever) {
  const PositionsOf positions = FirstPositions({4, 4, 1}, 6);
  EXPECT_EQ((*positions)[4], 0U);
  EXPECT_EQ((*positions)[1], 2U);
  EXPECT_EQ((*positions)[5], kNotRead);
}

TEST(UseForecast, EndsSoonWhereItIsStopped) {
  std::size_t looks = 0;
  const StopCheck stop([&looks] { return ++looks > 2; });
  const PositionsOf positions = FirstPositions({}, 4 * StopCheck::kSteps, stop);
  EXPECT_EQ(positions->size(), 2 * StopCheck::kSteps);
}

}  // namespace
}  // namespace optcache::node
