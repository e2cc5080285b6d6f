#include "simulation/least_capacity.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"
#include "unit/simulation/scene.h"

namespace optcache::simulation {
namespace {

// The value at every step.
using Curve = std::vector<double>;

MeasureAt Measuring(const Curve& curve) {
  return [&curve](double capacity) -> Result<double> {
    return curve.at(static_cast<std::size_t>(std::lround(capacity * kCapacitySteps)));
  };
}

LeastCapacity FoundOn(const Curve& curve, double at_most) {
  auto found = FindLeastCapacity(Measuring(curve), at_most);
  EXPECT_TRUE(found.has_value()) << found.error().ToString();
  return found.value_or(LeastCapacity{});
}

std::size_t StepOf(const LeastCapacity& found) {
  return static_cast<std::size_t>(std::lround(found.least->capacity * kCapacitySteps));
}

// The slow and obvious way.
std::optional<std::size_t> FirstStep(const Curve& curve, double at_most) {
  for (std::size_t step = 0; step < curve.size(); ++step) {
    if (curve[step] <= at_most) return step;
  }
  return std::nullopt;
}

Curve RandomCurve(Random& random) {
  Curve curve(kCapacitySteps + 1);
  for (double& value : curve)
    value = static_cast<double>(random.Below(50));
  return curve;
}

TEST(FindLeastCapacity, FindsTheFirstStepOfWhatNeverRises) {
  const std::uint64_t seed = TestSeed(41);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int run = 0; run < 200; ++run) {
    Curve curve = RandomCurve(random);
    std::ranges::sort(curve, std::greater());
    for (const double at_most : {-1.0, 0.0, 7.0, 25.0, 48.0, 49.0}) {
      const auto first = FirstStep(curve, at_most);
      const LeastCapacity found = FoundOn(curve, at_most);
      ASSERT_EQ(found.least.has_value(), first.has_value()) << at_most;
      if (!first) continue;
      EXPECT_EQ(StepOf(found), *first) << at_most;
      EXPECT_EQ(found.least->value, curve[*first]);
    }
  }
}

TEST(FindLeastCapacity, ReachesTheGoalAndAStepLessDoesNotWhateverTheCurve) {
  const std::uint64_t seed = TestSeed(43);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  int found_more_than_the_first = 0;
  for (int run = 0; run < 200; ++run) {
    const Curve curve = RandomCurve(random);
    const double at_most = 20;
    const LeastCapacity found = FoundOn(curve, at_most);
    ASSERT_EQ(found.least.has_value(), curve.back() <= at_most);
    if (!found.least) continue;
    const std::size_t step = StepOf(found);
    EXPECT_LE(curve[step], at_most);
    if (step > 0) {
      EXPECT_GT(curve[step - 1], at_most);
    }
    found_more_than_the_first += int{step > *FirstStep(curve, at_most)};
  }
  EXPECT_GT(found_more_than_the_first, 0);  // such a curve may hide a smaller one
}

TEST(FindLeastCapacity, MeasuresTwelveTimesAtMostAndSortsWhatItMeasured) {
  for (std::size_t first = 0; first <= kCapacitySteps; ++first) {
    Curve curve(kCapacitySteps + 1, 1);
    std::fill(curve.begin() + static_cast<std::ptrdiff_t>(first), curve.end(), 0);
    const LeastCapacity found = FoundOn(curve, 0);
    ASSERT_EQ(StepOf(found), first);
    EXPECT_LE(found.measured.size(), kMostMeasurements);
    EXPECT_TRUE(std::ranges::is_sorted(found.measured, {}, &CapacityPoint::capacity));
    EXPECT_EQ(found.measured.back().capacity, 1);
  }
}

TEST(FindLeastCapacity, SaysHowNearTheWholeDatasetComes) {
  const LeastCapacity found = FoundOn(Curve(kCapacitySteps + 1, 3), 2);
  EXPECT_FALSE(found.least.has_value());
  ASSERT_EQ(found.measured.size(), 1U);
  EXPECT_EQ(found.measured.back().value, 3);
}

TEST(FindLeastCapacity, EndsAtTheFirstError) {
  int asked = 0;
  const auto found = FindLeastCapacity(
      [&](double capacity) -> Result<double> {
        ++asked;
        if (capacity < 1) return Error(Code::kResourceExhausted, "no more");
        return 0;
      },
      1);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(asked, 2);
}

// What a run costs, and how long it waits, at every step of the capacity.
Curve CurveOf(const Reads& run, PolicyKind policy, const Goal& goal) {
  Curve curve;
  for (std::uint32_t step = 0; step <= kCapacitySteps; ++step) {
    CacheOptions options = EqualSizes(run, static_cast<double>(step) / kCapacitySteps);
    options.stores = {{.bandwidth = 0.6, .latency = 3}};
    curve.push_back(ValueOf(goal, Simulated(run, options, policy)));
  }
  return curve;
}

// The curves of stack algorithms, such as MIN and LRU, never rise where samples have one size.
TEST(FindLeastCapacity, IsTheLeastOfSimulationsOneByOne) {
  const std::vector<Reads> runs = {
      RunOf({.samples = 90, .epochs = 4}),
      RunOf({.samples = 90, .epochs = 4, .nodes = 3}),
      RunOf({.samples = 60, .epochs = 3, .jobs = 2, .rate_of_last = 0.5}),
      RunOf({.workload = Workload::kZipf, .samples = 60, .epochs = 4}),
  };
  const Goal cost{.of = Goal::Of::kCost, .price = {.per_request = 1}};
  for (const PolicyKind policy : {PolicyKind::kOptimal, PolicyKind::kMin, PolicyKind::kLru}) {
    for (std::size_t run = 0; run < runs.size(); ++run) {
      SCOPED_TRACE(testing::Message() << PolicyName(policy) << " on run " << run);
      const Curve curve = CurveOf(runs[run], policy, cost);
      EXPECT_TRUE(std::ranges::is_sorted(curve, std::greater()));
      for (const double share : {0.0, 0.3, 0.7, 1.0}) {
        const double at_most = std::lerp(curve.back(), curve.front(), share);
        EXPECT_EQ(StepOf(FoundOn(curve, at_most)), *FirstStep(curve, at_most));
      }
    }
  }
}

// Waiting depends on when misses come, too, so nothing says that its curve never rises.
TEST(FindLeastCapacity, WaitsAsLongAsWasAskedForAndLongerAStepBelow) {
  const Reads run = RunOf({.samples = 200, .epochs = 4, .jobs = 2});
  const Curve curve = CurveOf(run, PolicyKind::kOptimal, {.of = Goal::Of::kWaiting});
  EXPECT_NEAR(curve.front(), 0.4, 0.05);  // two jobs, none of whose reads hit
  EXPECT_EQ(curve.back(), 0);
  for (const double at_most : {0.0, 0.02, 0.1, 0.3}) {
    const std::size_t step = StepOf(FoundOn(curve, at_most));
    EXPECT_LE(curve[step], at_most);
    EXPECT_GT(curve.at(step - 1), at_most);
  }
}

TEST(Goal, CostIsThatOfRequestsAndBytes) {
  const PolicyResult result{.store_reads = 3'000'000, .store_bytes = 5_GiB / 2};
  const Goal goal{.of = Goal::Of::kCost, .price = {.per_request = 4e-7, .per_gib = 0.02}};
  EXPECT_DOUBLE_EQ(ValueOf(goal, result), 1.2 + 0.05);
}

TEST(Goal, WaitingIsAShareOfTheEpochsTime) {
  const Goal goal{.of = Goal::Of::kWaiting};
  EXPECT_DOUBLE_EQ(ValueOf(goal, {.epoch_time = {1.25}}), 0.2);
  EXPECT_EQ(ValueOf(goal, {.epoch_time = {1}}), 0);
  EXPECT_EQ(ValueOf(goal, {.epoch_time = {1 - 1e-14}}), 0);  // as sums of times may be
}

TEST(Goal, IsReachedByWhatDiffersOnlyInRounding) {
  EXPECT_TRUE(Reaches(0.1 + 0.2, 0.3));
  EXPECT_TRUE(Reaches(1e-14, 0));
  EXPECT_FALSE(Reaches(0.30001, 0.3));
  EXPECT_FALSE(Reaches(1e-9, 0));
  EXPECT_FALSE(Reaches(std::nan(""), 1));
}

TEST(FirstReads, CountsEachSampleOnce) {
  const Reads run = RunOf({.workload = Workload::kReplacement, .samples = 50, .epochs = 4});
  for (const std::size_t from : {std::size_t{0}, run.steady_from(), run.reads.size()}) {
    std::set<SampleId> before;
    std::uint64_t first_reads = 0;
    for (std::size_t t = 0; t < run.reads.size(); ++t) {
      const bool is_first = before.insert(run.reads[t].sample).second;
      first_reads += std::uint64_t{is_first && t >= from};
    }
    EXPECT_EQ(FirstReads(run, from), first_reads);
  }
  EXPECT_GT(FirstReads(run, run.steady_from()), 0U);
}

}  // namespace
}  // namespace optcache::simulation
