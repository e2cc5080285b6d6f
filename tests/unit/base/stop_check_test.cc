#include "base/stop_check.h"

#include <stop_token>
#include <vector>

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(StopCheck, SaysWhatItsTokenSays) {
  EXPECT_FALSE(StopCheck().Now());
  std::stop_source source;
  const StopCheck stop(source.get_token());
  EXPECT_FALSE(stop.Now());
  source.request_stop();
  EXPECT_TRUE(stop.Now());
}

TEST(StopCheck, LooksOnceInItsSteps) {
  std::size_t looks = 0;
  const StopCheck stop([&looks] { return ++looks > 2; });
  std::size_t step = 0;
  while (!stop.At(step))
    ++step;
  EXPECT_EQ(step, 2 * StopCheck::kSteps);
  EXPECT_EQ(looks, 3U);
}

TEST(Fill, EndsWhereItIsStopped) {
  std::vector<int> values = {1};
  Fill(values, StopCheck::kSteps + 1, 7, {});
  EXPECT_EQ(values, std::vector<int>(StopCheck::kSteps + 1, 7));
  std::size_t looks = 0;
  Fill(values, 1'000'000, 8, StopCheck([&looks] { return ++looks > 2; }));
  EXPECT_EQ(values, std::vector<int>(2 * StopCheck::kSteps, 8));
}

}  // namespace
}  // namespace optcache
