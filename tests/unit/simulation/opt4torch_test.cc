#include "simulation/policies/opt4torch.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::plan {
namespace {

constexpr Opt4TorchStep kNoDecision{};
constexpr Opt4TorchStep kCache{.should_cache = 1};
constexpr Opt4TorchStep kDoNotCache{.should_cache = 0};

// Worked out by hand from the published algorithm: one slot, held by sample 0 until read 5. At read
// 1 sample 1 (next at 2) takes it; at read 3 sample 2 is used later than 1 and does not.
TEST(Opt4Torch, DecidesAsPublished) {
  const Future future = FutureOf({0, 1, 1, 1, 2, 0, 1, 2}, 3);
  const std::vector<Opt4TorchStep> expected{
      kCache,                              // 0, next at 5
      {.should_cache = 1, .victim = 0},    // 1, next at 2
      kNoDecision,                         // 1: a hit
      kNoDecision,                         // 1: a hit, next at 6
      kDoNotCache,                         // 2, next at 7: later than 6
      kNoDecision,                         // 0: never again
      {.should_cache = -1, .release = 1},  // 1: a hit, and never again
      kNoDecision,                         // 2: never again
  };
  EXPECT_EQ(PlanAsOpt4Torch(future, 3, 1), expected);
}

// The sample that stays because what came is used later has lost its heap entry: the next one that
// comes, though used sooner, finds nothing to evict.
TEST(Opt4Torch, ForgetsWhatItHasComparedWith) {
  const Future future = FutureOf({0, 1, 2, 2, 0, 1}, 3);
  const std::vector<Opt4TorchStep> steps = PlanAsOpt4Torch(future, 3, 1);
  EXPECT_EQ(steps[0], kCache);       // 0, next at 4
  EXPECT_EQ(steps[1], kDoNotCache);  // 1, next at 5
  EXPECT_EQ(steps[2], kNoDecision);  // 2, next at 3: MIN would evict 0
}

int Hits(const std::vector<SampleId>& reads, std::span<const Opt4TorchStep> steps,
         std::uint32_t samples, std::size_t slots, Opt4TorchRuntime runtime) {
  const auto policy = RunOpt4Torch(steps, samples, slots, runtime);
  int hits = 0;
  for (const SampleId sample : reads)
    hits += policy->Read(sample) ? 1 : 0;
  return hits;
}

// What a file made by the published program replays at: 100,000 samples with replacement, 1,000,000
// reads, 30,000 slots. MIN reaches .6358.
TEST(Opt4Torch, HitsAsThePublishedPlans) {
  constexpr std::uint32_t kSamples = 100'000;
  constexpr std::size_t kSlots = 30'000;
  Random random(1);
  std::vector<SampleId> reads(1'000'000);
  for (SampleId& sample : reads)
    sample = static_cast<SampleId>(random.Below(kSamples));
  const Future future = FutureOf(reads, kSamples);
  const auto steps = PlanAsOpt4Torch(future, kSamples, kSlots);
  const auto ratio = [&](Opt4TorchRuntime runtime) {
    return Hits(reads, steps, kSamples, kSlots, runtime) / 1e6;
  };
  EXPECT_NEAR(ratio(Opt4TorchRuntime::kOneProcess), 0.6172, 0.002);
  EXPECT_NEAR(ratio(Opt4TorchRuntime::kShared), 0.604, 0.002);
  const auto min = MakeMin({.sizes = Sizes::Equal(kSamples, 1), .capacity = kSlots}, future);
  int hits = 0;
  for (const SampleId sample : reads)
    hits += min->Read(sample) ? 1 : 0;
  EXPECT_NEAR(hits / 1e6, 0.6360, 0.002);
}

// Sample 1 is read once: the shared runtime gives it the free slot all the same, and has none left
// for sample 2.
TEST(Opt4Torch, SharedRuntimeLosesSlotsToSamplesWithoutADecision) {
  const std::vector<SampleId> reads{0, 0, 1, 2, 2};
  const auto steps = PlanAsOpt4Torch(FutureOf(reads, 3), 3, 1);
  EXPECT_EQ(Hits(reads, steps, 3, 1, Opt4TorchRuntime::kOneProcess), 2);
  EXPECT_EQ(Hits(reads, steps, 3, 1, Opt4TorchRuntime::kShared), 1);
}

}  // namespace
}  // namespace optcache::plan
