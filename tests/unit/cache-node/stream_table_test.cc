#include "cache-node/stream_table.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

constexpr ClientId kSidecar = 1;
constexpr MonotonicTime kNow{std::chrono::hours(1)};

TEST(StreamTable, TheFirstProgressOfARankIsAChangeAndMoreOfThePassIsNone) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, {.stream = 7, .world = 1}).ok());
  const std::uint64_t attached = table.changes();
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 1) << "pass 0 of epoch 0 begins, too";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 64}, kNow);
  EXPECT_EQ(table.changes(), attached + 1);
  table.OnProgress(kSidecar, {.stream = 7, .pass = 1, .epoch = 1, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 2);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).last_pass_end, 64U);
}

}  // namespace
}  // namespace optcache::node
