#include "storage/latency_quantiles.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(LatencyQuantiles, SaysNothingBeforeEnoughWasObserved) {
  LatencyQuantiles latencies;
  EXPECT_EQ(latencies.Quantile(1, 0.5, 0), std::nullopt);
  latencies.Observe(1, milliseconds(5));
  EXPECT_EQ(latencies.Quantile(1, 0.5, 2), std::nullopt);
  latencies.Observe(1, milliseconds(5));
  EXPECT_TRUE(latencies.Quantile(1, 0.5, 2).has_value());
}

TEST(LatencyQuantiles, KeepsSizesApart) {
  LatencyQuantiles latencies;
  latencies.Observe(16_KiB, milliseconds(5));
  EXPECT_EQ(latencies.Quantile(16_KiB + 1, 0.5, 1), std::nullopt);
  EXPECT_TRUE(latencies.Quantile(1, 0.5, 1).has_value());
  EXPECT_EQ(LatencyQuantiles::ClassOf(0), 0U);
  EXPECT_EQ(LatencyQuantiles::ClassOf(16_MiB), 5U);
  EXPECT_EQ(LatencyQuantiles::ClassOf(1_GiB), 6U);
}

TEST(LatencyQuantiles, TakesWhatIsVeryShortAndVeryLong) {
  LatencyQuantiles latencies;
  latencies.Observe(1, Duration(-5));
  EXPECT_EQ(latencies.Quantile(1, 1, 1), std::chrono::microseconds(1));
  latencies.Observe(1, std::chrono::hours(1000));
  EXPECT_GT(latencies.Quantile(1, 1, 1), minutes(3));
}

TEST(LatencyQuantiles, IsAtMostNinePercentAboveTheSortedList) {
  const std::uint64_t seed = TestSeed(414);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 50; ++round) {
    LatencyQuantiles latencies;
    std::vector<double> all;
    const auto count = 1 + random.Below(3000);
    for (std::uint64_t i = 0; i < count; ++i) {
      const double ns = std::exp(8 + 12 * random.Unit());
      all.push_back(std::floor(ns));
      latencies.Observe(1, Duration(static_cast<Duration::rep>(ns)));
    }
    std::ranges::sort(all);
    for (const double share : {0.01, 0.5, 0.9, 0.98, 1.0}) {
      const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(count)));
      const double exact = all[std::max<size_t>(rank, 1) - 1];
      const auto estimate = static_cast<double>(latencies.Quantile(1, share, 1)->count());
      EXPECT_GE(estimate, exact * 0.999);
      EXPECT_LE(estimate, exact * 1.0906);
    }
  }
}

TEST(LatencyQuantiles, ForgetsWhatWasLongAgo) {
  LatencyQuantiles latencies;
  for (int i = 0; i < 5000; ++i)
    latencies.Observe(1, milliseconds(500));
  for (int i = 0; i < 30000; ++i)
    latencies.Observe(1, milliseconds(5));
  EXPECT_LT(latencies.Quantile(1, 0.98, 1), milliseconds(6));
}

}  // namespace
}  // namespace optcache::storage
