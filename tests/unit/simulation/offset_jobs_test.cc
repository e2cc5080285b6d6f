// Jobs that begin in the middle of a pass, by the plan: with room for all the store is read once,
// and with less the plan reads no more than caches that know nothing of the future.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "simulation/cluster.h"
#include "unit/simulation/scene.h"

namespace optcache::simulation {
namespace {

constexpr std::uint32_t kMeanBytes = 1000;

std::uint32_t Between(Random& random, std::uint32_t least, std::uint32_t most) {
  return least + static_cast<std::uint32_t>(random.Below(most - least + 1));
}

enum class Jobs {
  kAny,    // of any length, perhaps with speeds that vary
  kWhole,  // that read whole passes
};

// One to four jobs at offsets and speeds of their own, spread over the nodes in any way.
Reads RandomRun(Random& random, Workload workload, Jobs jobs) {
  const std::uint32_t samples = Between(random, 50, 400);
  Pace pace{.jobs = std::vector<JobPace>(Between(random, 1, 4)),
            .epochs = Between(random, 2, 7),
            .nodes = Between(random, 1, 4)};
  pace.ranks = Between(random, 1, 6);
  for (JobPace& job : pace.jobs) {
    job.ahead = random.Below(4) == 0 ? 0 : random.Unit();
    job.rate = random.Below(2) == 0 ? 1 : 0.3 + random.Unit();
    if (jobs == Jobs::kAny && random.Below(2) == 0) job.stops_at = Between(random, 1, samples);
  }
  if (jobs == Jobs::kAny && random.Below(4) == 0) pace.drift = 0.1;
  const OrderMaker orders({.workload = workload, .samples = samples, .seed = random.Below(1000)});
  return *MakeReads(samples, pace,
                    [&](std::uint32_t job, PassNumber pass) { return orders.Make(job, pass); });
}

plan::Sizes RandomSizes(Random& random, std::uint32_t samples) {
  return random.Below(2) == 0 ? plan::Sizes::Equal(samples, kMeanBytes)
                              : LognormalSizes(samples, kMeanBytes, 0.6, random.Below(1000));
}

std::uint64_t SamplesRead(const Reads& run) {
  std::vector<bool> known(run.sample_count);
  for (const Read& read : run.reads)
    known[read.sample] = true;
  return static_cast<std::uint64_t>(std::ranges::count(known, true));
}

TEST(OffsetJobs, ReadNothingTwiceWhereThereIsRoomForAll) {
  const std::uint64_t first = TestSeed(1);
  for (std::uint64_t seed = first; seed < first + 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
    Random random(seed);
    const auto workload = static_cast<Workload>(random.Below(kWorkloadNames.size()));
    const Reads run = RandomRun(random, workload, Jobs::kAny);
    const plan::Sizes sizes = RandomSizes(random, run.sample_count);
    const auto cluster =
        MakePlannedCluster({.run = run,
                            .sizes = sizes,
                            .capacities = std::vector<ByteCount>(run.nodes, sizes.total())},
                           plan::Objective::kBytes);
    ASSERT_TRUE(cluster.has_value()) << cluster.error().ToString();
    std::uint64_t store_reads = 0;
    for (const Read& read : run.reads)
      store_reads += (*cluster)->Read(read)->from == Outcome::From::kStore ? 1U : 0U;
    ASSERT_EQ(store_reads, SamplesRead(run));
  }
}

// Pin reads the least that is possible where one job shuffles. Then both differ by chance alone: by
// which samples the last pass reads before the run ends, and by which nodes the samples are read.
// Either is about the square root of the samples.
TEST(OffsetJobs, ReadNoMoreByThePlanThanByPinOrLru) {
  const std::uint64_t first = TestSeed(1);
  for (std::uint64_t seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
    Random random(seed);
    const Reads run = RandomRun(random, Workload::kPermutation, Jobs::kWhole);
    CacheOptions options{.sizes = RandomSizes(random, run.sample_count)};
    const double chance = 2 * std::sqrt(run.sample_count * run.nodes) * kMeanBytes;
    for (const double capacity : {0.5, 0.8, 0.9}) {
      options.capacity = capacity;
      const auto bytes_by = [&](PolicyKind kind) {
        return static_cast<double>(Simulated(run, options, kind).store_bytes);
      };
      const double by_plan = bytes_by(PolicyKind::kOptimal);
      const double by_others = std::min(bytes_by(PolicyKind::kPin), bytes_by(PolicyKind::kLru));
      EXPECT_LE(by_plan, by_others + chance) << capacity;
      const auto bound = BoundOf(run, options)->store_bytes;
      EXPECT_GE(by_plan, static_cast<double>(bound.value_or(0))) << capacity;
    }
  }
}

}  // namespace
}  // namespace optcache::simulation
