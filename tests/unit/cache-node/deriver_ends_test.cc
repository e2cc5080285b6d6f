#include "cache-node/deriver_ends.h"

#include <atomic>

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

// One that derives for seconds.
std::unique_ptr<PlanDeriver> BusyDeriver(std::atomic<int>& told) {
  constexpr std::uint32_t kSamples = 1'000'000;
  auto deriver = std::make_unique<PlanDeriver>([&told](const DerivedWindow&) { ++told; });
  PlanTask task{.capacities = {{.member = 1, .bytes = kSamples / 3}},
                .sizes = plan::Sizes::Equal(kSamples, 1)};
  for (StreamId id = 1; id <= 8; ++id) {
    task.streams.push_back({.id = id,
                            .recipe = {.sampler_kind = 1, .size = kSamples, .world = 1},
                            .node_of_rank = {1}});
  }
  deriver->Begin(std::move(task));
  return deriver;
}

TEST(DeriverEnds, WaitsForWhatItTookAndNoLongerThanThat) {
  std::atomic<int> told = 0;
  {
    DeriverEnds ends;
    for (int i = 0; i < 3; ++i)
      ends.Take(BusyDeriver(told));
  }
  EXPECT_EQ(told, 0) << "a window was derived to its end";
}

TEST(DeriverEnds, TakesOneThatHasNothingToDo) {
  DeriverEnds ends;
  ends.Take(std::make_unique<PlanDeriver>([](const DerivedWindow&) {}));
}

}  // namespace
}  // namespace optcache::node
