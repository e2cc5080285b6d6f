#include "cache-node/stream_table.h"

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

constexpr ClientId kSidecar = 1;
constexpr MonotonicTime kNow{std::chrono::hours(1)};

wire::StreamAttach Attach(Rank rank = 0, std::uint32_t world = 1) {
  return {.dataset = 3,
          .dataset_name = "default/images",
          .stream = 7,
          .stream_name = "train",
          .world = world,
          .rank = rank};
}

TEST(StreamTable, RefusesWhatNoReportCouldSay) {
  StreamTable table;
  for (const std::string& name :
       {std::string(), std::string(coordination::kMaxNameBytes + 1, 'x')}) {
    wire::StreamAttach attach = Attach();
    attach.stream_name = name;
    EXPECT_EQ(table.OnAttach(kSidecar, attach).code(), Code::kInvalidArgument) << name.size();
  }
  wire::StreamAttach attach = Attach();
  attach.stream = 0;
  EXPECT_EQ(table.OnAttach(kSidecar, attach).code(), Code::kInvalidArgument);
}

TEST(StreamTable, ARankThatMayNotReadAnyMoreIsNotListed) {
  StreamTable table;
  for (const Rank rank : {0U, 1U})
    EXPECT_TRUE(table.OnAttach(kSidecar, Attach(rank, 2)).ok());
  const std::uint64_t changes = table.changes();
  table.OnRevoked(kSidecar + 1, 7, 0);
  EXPECT_EQ(table.changes(), changes) << "it is another's";
  table.OnRevoked(kSidecar, 7, 0);
  EXPECT_GT(table.changes(), changes);
  ASSERT_EQ(table.Report().size(), 1U);
  EXPECT_EQ(table.Report()[0].ranks.size(), 1U);
  table.OnRevoked(kSidecar, 7, 1);
  EXPECT_TRUE(table.Report().empty());
  EXPECT_FALSE(table.Reads(kSidecar, 7));
}

TEST(StreamTable, ARankHasReachedWhatWasServedAndNotOnlyWhatTheTrainerRead) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  EXPECT_EQ(table.Passes(7), std::nullopt) << "it has not begun";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 3, .position = 10}, kNow);
  EXPECT_EQ(table.Passes(7)->lowest, 3U);
  table.OnServed({.stream = 7, .items = {{3, 40, 1}, {3, 30, 2}}});
  ASSERT_EQ(table.Positions(3).size(), 1U);
  EXPECT_EQ(table.Positions(3)[0].next, (coordination::Cut{3, 41}));
}

TEST(StreamTable, TheFirstProgressOfARankIsAChangeAndMoreOfThePassIsNone) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  const std::uint64_t attached = table.changes();
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 1) << "pass 0 of epoch 0 begins, too";
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 0, .position = 64}, kNow);
  EXPECT_EQ(table.changes(), attached + 1);
  table.OnProgress(kSidecar, {.stream = 7, .pass = 1, .epoch = 1, .position = 0}, kNow);
  EXPECT_EQ(table.changes(), attached + 2);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).last_pass_end, 64U);
}

TEST(StreamTable, AStreamWhoseRanksHaveEndedBeginsANewLife) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  table.OnProgress(kSidecar,
                   {.stream = 7, .rank = 1, .pass = 5, .epoch = 5, .position = 64, .ended = true},
                   kNow);
  EXPECT_EQ(table.Report().at(0).ranks.size(), 1U) << "so that the coordinator hears of the end";
  EXPECT_TRUE(table.Positions(3).empty());
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  ASSERT_EQ(table.Report().at(0).ranks.size(), 1U);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).rank, 0U);
  EXPECT_EQ(table.Passes(7), std::nullopt);
}

// One rank has ended, the other is still read in the stream's life before.
TEST(StreamTable, ARankThatIsStartedAgainBeginsFromNothing) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(0, 2)).ok());
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  wire::StreamProgress progress{.stream = 7, .rank = 1, .pass = 5, .epoch = 5, .position = 65};
  table.OnProgress(kSidecar, progress, kNow);
  table.OnServed({.stream = 7, .items = {{5, 81, 1}}});
  progress.ended = true;
  table.OnProgress(kSidecar, progress, kNow);
  ASSERT_EQ(table.Positions(3).size(), 1U) << "the end of a life is no place in the next";
  EXPECT_EQ(table.Positions(3)[0].rank, 0U);
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach(1, 2)).ok());
  EXPECT_FALSE(table.Report().at(0).ranks.at(1).started);
  EXPECT_EQ(table.Positions(3).at(1).next, coordination::Cut());
}

TEST(StreamTable, WhatWasServedBeforeAPassIsReadAgainIsForgotten) {
  StreamTable table;
  ASSERT_TRUE(table.OnAttach(kSidecar, Attach()).ok());
  table.OnProgress(kSidecar, {.stream = 7, .pass = 5, .epoch = 5, .position = 64}, kNow);
  table.OnServed({.stream = 7, .items = {{5, 80, 1}}});
  table.OnProgress(kSidecar, {.stream = 7, .pass = 0, .epoch = 5, .position = 10}, kNow);
  EXPECT_EQ(table.Report().at(0).ranks.at(0).last_pass_end, 0U);
  EXPECT_EQ(table.Positions(3).at(0).next, (coordination::Cut{0, 10}));
}

TEST(StreamTable, AnOrderAsTextIsKnownIfItCanBeRead) {
  StreamTable table;
  wire::StreamAttach attach = Attach(0, 2);
  attach.known = false;
  ASSERT_TRUE(table.OnAttach(kSidecar, attach).ok());
  const auto recipe = [&table] { return table.Report().at(0).ranks.at(0).recipe; };
  const std::string text = "spdl-random size=9 world=2 drop_last=true";
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = "newer size=9 world=2"});
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = "torch-distributed size=9"});
  table.OnOrder(kSidecar + 1, {.stream = 7, .rank = 0, .recipe = text});
  table.OnOrder(kSidecar, {.stream = 8, .rank = 0, .recipe = text});
  EXPECT_FALSE(recipe().known);
  const std::uint64_t changes = table.changes();
  table.OnOrder(kSidecar, {.stream = 7, .rank = 0, .recipe = text});
  EXPECT_TRUE(recipe().known);
  EXPECT_EQ(recipe().order, text);
  EXPECT_TRUE(table.Report().at(0).ranks.at(0).order_known);
  EXPECT_GT(table.changes(), changes);
}

}  // namespace
}  // namespace optcache::node
