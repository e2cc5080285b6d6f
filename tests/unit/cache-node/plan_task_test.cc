#include "cache-node/planning/plan_task.h"

#include <numeric>

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

TEST(PlanTask, LooksWhileItReadsTheBase) {
  constexpr std::uint32_t kSamples = 4 * StopCheck::kSteps;
  std::vector<SampleId> ids(kSamples);
  std::iota(ids.begin(), ids.end(), SampleId{0});
  PlanTask task;
  task.sizes = plan::Sizes::Equal(kSamples, 1);
  task.capacities = {{.member = 7, .bytes = kSamples}};
  const PlanTask::Base base = {{7, ids}};
  std::size_t looks = 0;
  const auto whole = InputsOf(task, base, StopCheck([&looks] { return ++looks == 0; }));
  EXPECT_EQ(whole->base, plan::Holders(kSamples, 0));
  EXPECT_GE(looks, 8U);
  looks = 0;
  const auto part = InputsOf(task, base, StopCheck([&looks] { return ++looks > 6; }));
  EXPECT_EQ(part->base.back(), kNoNode);
}

}  // namespace
}  // namespace optcache::node
