#include "cache-node/planning/planned_shares.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

constexpr Position kReads = 6;

// One stream's pass from `begin` on: all by node 0, from the store.
std::shared_ptr<const plan::PassPlan> PlanFrom(Position begin) {
  plan::PassPlanBuilder builder(
      {.key = {.stream = 1, .pass = 2}, .begin = begin, .end = kReads, .pass_length = kReads}, {0},
      1);
  for (Position p = begin; p < kReads; ++p)
    builder.Add(0, kNoNode, kNoNode, 1);
  return builder.Finish();
}

class PlannedSharesTest : public testing::Test {
 protected:
  std::uint64_t ReadsWith(Position begin, const StopCheck& stop = {}) {
    return shares_.Add(PlanFrom(begin), 0, order_, plan::Sizes::Equal(kReads, 1), stop).reads;
  }

 private:
  PlannedShares shares_;
  plan::Order order_ =
      std::make_shared<const std::vector<SampleId>>(std::vector<SampleId>{0, 1, 2, 3, 4, 5});
};

TEST_F(PlannedSharesTest, WhatWasSaidBeforeACutCounts) {
  EXPECT_EQ(ReadsWith(0), kReads);
  EXPECT_EQ(ReadsWith(4), kReads);
  EXPECT_EQ(ReadsWith(2), kReads) << "the one that began later is gone";
}

TEST_F(PlannedSharesTest, WhatIsStoppedIsNotAdded) {
  EXPECT_EQ(ReadsWith(0), kReads);
  ReadsWith(0, StopCheck([] { return true; }));
  ReadsWith(3, StopCheck([] { return true; }));
  EXPECT_EQ(ReadsWith(4), kReads);
}

}  // namespace
}  // namespace optcache::node
