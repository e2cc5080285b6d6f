// What staging gains where the store is slow, in virtual time.

#include "sidecar/prefetch/prefetcher.h"

#include "unit/sidecar/throttled_world.h"

namespace optcache::sidecar {
namespace {

// The demo's, and its 64 MiB of arena, a quarter of each.
constexpr std::size_t kImages = 14'058;
constexpr Duration kFreeEpoch = std::chrono::seconds(20);

ThrottledWorld::Scene Images(double bandwidth_share, std::uint64_t seed) {
  Random random(seed);
  ThrottledWorld::Scene scene{
      .sizes = ImageSizes(kImages, random), .arena = 16_MiB, .epoch = kFreeEpoch};
  const auto bytes =
      static_cast<double>(std::accumulate(scene.sizes.begin(), scene.sizes.end(), ByteCount{0}));
  scene.speed.bandwidth = bandwidth_share * bytes / 20;
  return scene;
}

TEST(Prefetcher, BoundsWhatIsRememberedByTheNumberOfRanks) {
  RankReader reader({}, 1);
  EXPECT_EQ(Prefetcher::MayStage(reader, 1), 0U);
  const auto may_stage = [&](std::size_t reads, std::size_t ranks) {
    reader.Begin({.pass = reader.first_pass(), .end = reads}, std::nullopt);
    auto order = std::make_shared<RankPass>();
    order->ids.resize(reads);
    reader.current()->SetOrder(std::move(order));
    return Prefetcher::MayStage(reader, ranks);
  };
  EXPECT_EQ(may_stage(100, 1), 256U);
  EXPECT_EQ(may_stage(1'000'000, 0), 16'384U) << "the only rank has just ended";
  EXPECT_EQ(may_stage(8000, 1), 2000U);
  EXPECT_EQ(may_stage(1'000'000, 1), 16'384U);
  EXPECT_EQ(may_stage(1'000'000, 8), 4096U);
  EXPECT_EQ(may_stage(1'000'000, 1000), 256U);
}

// Of the epochs after the first `cold`.
struct Warm {
  double ratio = 0;  // of their time and the least possible: to compute, or to read what was read
  double longest_wait = 0;
};

Warm Train(const ThrottledWorld::Scene& scene, PassNumber cold, PassNumber passes) {
  ThrottledWorld world(scene);
  Warm warm;
  double taken = 0;
  double bytes = 0;
  for (PassNumber pass = 0; pass < passes; ++pass) {
    const ThrottledWorld::Epoch epoch = world.Run(pass);
    if (pass < cold) continue;
    taken += epoch.seconds;
    bytes += static_cast<double>(epoch.store_bytes);
    warm.longest_wait = std::max(warm.longest_wait, epoch.longest_wait);
  }
  const double computing = ToSeconds(scene.epoch) * (passes - cold);
  warm.ratio = taken / std::max(computing, bytes / scene.speed.bandwidth);
  return warm;
}

// The store delivers in an epoch just what the node does not have.
TEST(Prefetcher, UsesAllThatASlowStoreDelivers) {
  for (const std::uint64_t seed : {1U, 2U}) {
    SCOPED_TRACE(seed);
    EXPECT_LE(Train(Images(0.70, seed), 1, 3).ratio, 1.02);
  }
}

// And here a little more. The second epoch begins without anything that was read ahead, since the
// first has to wait for nearly all.
TEST(Prefetcher, TrainersHardlyWaitForLargeSamplesIfTheStoreIsFastEnough) {
  for (const std::uint64_t seed : {1U, 2U}) {
    SCOPED_TRACE(seed);
    EXPECT_LE(Train(Images(0.75, seed), 2, 4).longest_wait, 0.5);
  }
}

// One read gets a sixteenth of the bandwidth, so others must not wait for it.
TEST(Prefetcher, HoldsNothingBackForLongWhereEachReadIsLimited) {
  ThrottledWorld::Scene scene{
      .sizes = std::vector<ByteCount>(3000, 10'000), .arena = 8_MiB, .epoch = kFreeEpoch};
  scene.speed.bandwidth = 0.75 * 3000 * 10'000 / 20;
  scene.speed.connection = scene.speed.bandwidth / 16;
  EXPECT_LE(Train(scene, 1, 3).ratio, 1.02);
}

}  // namespace
}  // namespace optcache::sidecar
