#include "cli/simulate/simulate_charts.h"

#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

TEST(SimulateCharts, ShowThreePicturesOfEachPolicy) {
  PlottedPolicy policy{.name = "optimal"};
  policy.epoch_time_by_bandwidth.fill(2.2);
  const std::string svg = DrawSimulation({policy}, .3);
  for (const char* const text :
       {"Hit ratio by capacity", "Over the epoch, capacity 0.3", "Epoch time, capacity 0.3",
        ">optimal<", ">2.5<"}) {  // the axis has room for 2.2
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace optcache::cli
