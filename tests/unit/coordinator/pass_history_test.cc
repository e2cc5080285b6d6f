#include "coordinator/pass_history.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

constexpr MonotonicTime kHistoryBegin{std::chrono::hours(1)};
constexpr StreamId kReader = 7;

// A stream of one rank that has read pass 0 to its end.
TrackedStreams OneStream() {
  StreamReport report{.id = kReader,
                      .name = "vision/job/imagenet/7",
                      .incarnation = 1,
                      .dataset = "vision/imagenet",
                      .dataset_key = 1};
  RankReport rank{.rank = 0, .recipe = {.size = 10}, .started = true};
  report.ranks = {rank};
  TrackedStreams streams;
  TrackedStream& stream =
      streams.emplace(kReader, TrackedStream(report, Version{}, kHistoryBegin)).first->second;
  stream.Observe(rank, 1, kHistoryBegin);
  rank.pass = 1;
  rank.last_pass_end = 10;
  stream.Observe(rank, 1, kHistoryBegin + std::chrono::seconds(1));
  return streams;
}

DatasetReport Counted(std::uint64_t hits) {
  return {.hits = hits, .passes = {{.stream = kReader, .pass = 0, .hits = hits}}};
}

TEST(PassHistory, CountersStayWhenTheirMemberGoes) {
  PassHistory history;
  history.Take(1, Counted(4));
  history.Take(2, Counted(5));
  history.Take(2, Counted(6));
  EXPECT_EQ(history.Sum().hits, 10U) << "a member's last report counts";
  history.MemberHasGone(2);
  EXPECT_EQ(history.Sum().hits, 10U);
  EXPECT_EQ(history.reports().size(), 1U);
  history.MemberHasGone(3);
  EXPECT_EQ(history.Sum().hits, 10U) << "one that said nothing";
}

TEST(PassHistory, WhatAMemberDoesNotServeAnyMoreIsNotCounted) {
  PassHistory history;
  history.Take(1, Counted(4));
  history.Drop(1);
  EXPECT_EQ(history.Sum().hits, 0U);
}

TEST(PassHistory, AddsUpThePassesOfStreamsThatAreFollowed) {
  PassHistory history;
  history.Take(1, Counted(4));
  history.Take(2, Counted(5));
  history.MemberHasGone(2);
  const auto passes = history.Passes(OneStream());
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes[0].sum.hits, 9U);
  EXPECT_EQ(passes[0].length, 10U);
  EXPECT_TRUE(history.Passes({}).empty());
  history.ForgetPasses(kReader);
  EXPECT_EQ(history.Passes(OneStream())[0].sum.hits, 4U) << "of members that are there";
}

}  // namespace
}  // namespace optcache::coordination
