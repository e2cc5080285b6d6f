#include "cache-node/control/store_table.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "support/manual_clock.h"

namespace optcache::node {
namespace {

using std::chrono::seconds;
using wire::StoreState;

class StoreTableTest : public testing::Test {
 protected:
  void Say(ClientId client, StoreState state, std::uint64_t silent_ms = 0,
           const std::string& cause = "") {
    stores_.OnHealth(client, {.dataset = 1, .state = state, .silent_ms = silent_ms, .cause = cause},
                     clock_.Now());
  }
  coordination::StoreReport Report() const { return stores_.Report(1, clock_.Now()); }

  ManualClock clock_;
  StoreTable stores_;
};

TEST_F(StoreTableTest, CountsWhomTheStoreAnswers) {
  EXPECT_EQ(Report(), coordination::StoreReport{});
  Say(1, StoreState::kAnswers);
  Say(2, StoreState::kSilent, 2000, "refused");
  Say(3, StoreState::kSilent, 9000, "no route");
  Say(4, StoreState::kUntried);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Report(), (coordination::StoreReport{
                          .answering = 1, .silent = 2, .silent_ms = 10000, .cause = "no route"}));
  EXPECT_EQ(stores_.Report(2, clock_.Now()), coordination::StoreReport{});
}

TEST_F(StoreTableTest, WhoHasGoneSaysNothingMore) {
  Say(1, StoreState::kSilent, 2000, "refused");
  const std::uint64_t changes = stores_.changes();
  stores_.OnClosed(1);
  EXPECT_EQ(Report(), coordination::StoreReport{});
  EXPECT_GT(stores_.changes(), changes);
  const std::uint64_t closed = stores_.changes();
  stores_.OnClosed(1);
  EXPECT_EQ(stores_.changes(), closed);
}

TEST_F(StoreTableTest, TellsOfAnObjectThatHasChangedForAMinute) {
  const std::uint64_t changes = stores_.changes();
  Say(1, StoreState::kChanged, 0, "a.jpg");
  EXPECT_GT(stores_.changes(), changes);
  EXPECT_EQ(Report(), (coordination::StoreReport{.answering = 1, .changed = "a.jpg"}));
  Say(1, StoreState::kChanged, 0, "b\njpg" + std::string(4000, 'x'));
  EXPECT_TRUE(Report().changed.starts_with("b\\u000ajpgxxx"));
  EXPECT_EQ(Report().changed.size(), coordination::kMaxCauseBytes);
  stores_.OnClosed(1);
  clock_.Advance(StoreTable::kChangedFor - seconds(1));
  EXPECT_EQ(Report().answering, 0U);
  EXPECT_NE(Report().changed, "") << "the job that met it has ended";
  EXPECT_EQ(stores_.Report(2, clock_.Now()), coordination::StoreReport{});
  clock_.Advance(seconds(1));
  EXPECT_EQ(Report(), coordination::StoreReport{});
}

TEST_F(StoreTableTest, TheSameAgainIsNoNews) {
  Say(1, StoreState::kSilent, 2000, "refused");
  const std::uint64_t changes = stores_.changes();
  Say(1, StoreState::kSilent, 17000, "refused");
  EXPECT_EQ(stores_.changes(), changes);
  EXPECT_EQ(Report().silent_ms, 17000U);
  Say(1, StoreState::kAnswers);
  EXPECT_GT(stores_.changes(), changes);
}

TEST_F(StoreTableTest, WhatComesFromOutsideIsBounded) {
  Say(1, StoreState::kSilent, ~0ULL, "two\nlines \xff\x7f \xc3\xa9 " + std::string(4000, 'x'));
  EXPECT_EQ(Report().silent_ms, coordination::kMaxSilentMs);
  clock_.Advance(seconds(1));
  EXPECT_EQ(Report().silent_ms, coordination::kMaxSilentMs);
  const std::string cause = Report().cause;
  EXPECT_TRUE(cause.starts_with("two\\u000alines \\xff\\u007f \xc3\xa9 xxx")) << cause;
  EXPECT_EQ(cause.size(), coordination::kMaxCauseBytes);
  EXPECT_TRUE(IsUtf8(cause));
}

TEST_F(StoreTableTest, AClientHasOnlySoManyDatasets) {
  for (wire::DatasetKey key = 1; key <= coordination::kMaxDatasets + 1; ++key)
    stores_.OnHealth(1, {.dataset = key, .state = StoreState::kAnswers}, clock_.Now());
  EXPECT_EQ(stores_.Report(coordination::kMaxDatasets, clock_.Now()).answering, 1U);
  EXPECT_EQ(stores_.Report(coordination::kMaxDatasets + 1, clock_.Now()).answering, 0U);
}

}  // namespace
}  // namespace optcache::node
