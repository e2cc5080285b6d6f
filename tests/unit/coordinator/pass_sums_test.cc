#include "coordinator/pass_sums.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

TEST(PassSums, KeepsTheLatestPassesOfEachStream) {
  std::vector<PassReport> sums;
  for (PassNumber pass = 0; pass < 5; ++pass)
    sums.push_back({.stream = 1, .pass = pass});
  for (PassNumber pass = 0; pass < 3; ++pass)
    sums.push_back({.stream = 2, .pass = pass});
  KeepLatest(sums);
  ASSERT_EQ(sums.size(), 2 * kPassesReported);
  EXPECT_EQ(sums[0].stream, 1U);
  EXPECT_EQ(sums[0].pass, 2U);
  EXPECT_EQ(sums[2].pass, 4U);
  EXPECT_EQ(sums[3].stream, 2U);
  EXPECT_EQ(sums[3].pass, 0U);
}

TEST(PassSums, AddsEveryNumber) {
  const PassReport one{.stream = 1,
                       .pass = 2,
                       .hits = 3,
                       .peer_hits = 4,
                       .misses = 5,
                       .miss_bytes = 6,
                       .moved_bytes = 7,
                       .planned_reads = 8,
                       .planned_misses = 9,
                       .planned_miss_bytes = 10,
                       .planned_moved_bytes = 11};
  std::vector<PassReport> sums = {one, one};
  AddUp(sums);
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0], (PassReport{.stream = 1,
                                 .pass = 2,
                                 .hits = 6,
                                 .peer_hits = 8,
                                 .misses = 10,
                                 .miss_bytes = 12,
                                 .moved_bytes = 14,
                                 .planned_reads = 16,
                                 .planned_misses = 18,
                                 .planned_miss_bytes = 20,
                                 .planned_moved_bytes = 22}));
}

TEST(PassSums, AddsUpWhateverTheOrder) {
  std::vector<PassReport> sums = {{.stream = 2, .pass = 0, .hits = 1},
                                  {.stream = 1, .pass = 7, .hits = 2},
                                  {.stream = 2, .pass = 0, .hits = 4},
                                  {.stream = 1, .pass = 6, .hits = 8}};
  AddUp(sums);
  EXPECT_EQ(sums, (std::vector<PassReport>{{.stream = 1, .pass = 6, .hits = 8},
                                           {.stream = 1, .pass = 7, .hits = 2},
                                           {.stream = 2, .pass = 0, .hits = 5}}));
  AddUp(sums);
  EXPECT_EQ(sums.size(), 3U);
}

}  // namespace
}  // namespace optcache::coordination
