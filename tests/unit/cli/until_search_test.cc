#include "cli/simulate/until_search.h"

#include <gtest/gtest.h>

#include "cli/simulate/simulate_charts.h"

namespace optcache::cli {
namespace {

TEST(SearchUntil, FindsTheLeastCapacityOfEachPolicy) {
  const auto scene = MakeScene({.samples = 500,
                                .epochs = 3,
                                .store_bandwidth = {0.6},
                                .until = "waiting=5%",
                                .policies = {"optimal", "pin"}});
  ASSERT_TRUE(scene) << scene.error().message();
  const auto found = SearchUntil(*scene, /*draw=*/false);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->lines.size(), 2U);
  for (const UntilReport::Line& line : found->lines) {
    ASSERT_TRUE(line.found.least);
    EXPECT_LE(line.found.least->value, 0.05);
    EXPECT_LE(line.found.measured.size(), simulation::kMostMeasurements);
  }
  EXPECT_GE(SearchUntil(*scene, /*draw=*/true)->lines[0].found.measured.size(),
            kPlottedCapacities.size());
}

}  // namespace
}  // namespace optcache::cli
