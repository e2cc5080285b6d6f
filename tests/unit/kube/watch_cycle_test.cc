#include "kube/watch_cycle.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

ApiError Failed(int http_status, std::optional<Duration> retry_after = std::nullopt) {
  return {.status = Status(Code::kUnavailable, "failed"),
          .http_status = http_status,
          .retry_after = retry_after};
}

class WatchCycleTest : public testing::Test {
 protected:
  static ListStep List(const CycleStep& step) { return std::get<ListStep>(step); }
  static WatchStep Watch(const CycleStep& step) { return std::get<WatchStep>(step); }
  static Duration Wait(const CycleStep& step) { return std::get<WaitStep>(step).wait; }
  // Through the first list to a watch of version 10.
  WatchStep StartWatch() {
    cycle.Start();
    return Watch(cycle.OnPage("10", "", clock.Now()));
  }
  CycleStep End(const std::optional<ApiError>& error) {
    return cycle.OnWatchEnded(error, clock.Now());
  }
  CycleStep ListFailed(const ApiError& error) { return cycle.OnListFailed(error, clock.Now()); }
  CycleStep Resume() { return cycle.Resume(clock.Now()); }

  ManualClock clock;
  WatchCycle cycle{{}, 7};
};

TEST_F(WatchCycleTest, ListsPageByPageThenWatchesFromTheListsVersion) {
  const ListStep first = List(cycle.Start());
  EXPECT_EQ(first.limit, 500U);
  EXPECT_EQ(first.continue_token, "");
  EXPECT_TRUE(first.first);
  const ListStep second = List(cycle.OnPage("8", "more", clock.Now()));
  EXPECT_EQ(second.limit, 500U);
  EXPECT_EQ(second.continue_token, "more");
  EXPECT_FALSE(second.first);
  EXPECT_EQ(Watch(cycle.OnPage("8", "", clock.Now())).resource_version, "8");
  EXPECT_EQ(cycle.lists(), 1U);
}

TEST_F(WatchCycleTest, WatchTimeoutsAreRandomBetweenFiveAndTenMinutes) {
  Duration least = minutes(60);
  Duration most{};
  StartWatch();
  for (int i = 0; i < 200; ++i) {
    clock.Advance(minutes(5));
    const Duration timeout = Watch(End(std::nullopt)).timeout;
    least = std::min(least, timeout);
    most = std::max(most, timeout);
  }
  EXPECT_GE(least, minutes(5));
  EXPECT_LT(least, minutes(6));
  EXPECT_GT(most, minutes(9));
  EXPECT_LE(most, minutes(10));
}

TEST_F(WatchCycleTest, ACleanEndIsNoErrorAndTheWatchGoesOnAtOnce) {
  StartWatch();
  clock.Advance(minutes(5));
  EXPECT_EQ(Watch(End(std::nullopt)).resource_version, "10");
  EXPECT_EQ(cycle.failures(), 0U);
  EXPECT_EQ(cycle.lists(), 1U);
}

TEST_F(WatchCycleTest, ABookmarkMovesTheVersionFromWhichTheWatchGoesOn) {
  StartWatch();
  cycle.OnProgress("99");
  EXPECT_EQ(Watch(End(std::nullopt)).resource_version, "99");
}

TEST_F(WatchCycleTest, AfterABrokenConnectionItWaitsAndGoesOnFromWhereItWas) {
  StartWatch();
  cycle.OnProgress("12");
  const Duration wait = Wait(End(Failed(0)));
  EXPECT_GE(wait, milliseconds(800));
  EXPECT_LE(wait, milliseconds(1600));
  EXPECT_EQ(Watch(Resume()).resource_version, "12");
}

TEST_F(WatchCycleTest, GoneListsAnewAtOnce) {
  StartWatch();
  cycle.OnProgress("12");
  const ListStep list = List(End(Failed(410)));
  EXPECT_TRUE(list.first);
  EXPECT_EQ(list.limit, 500U);
  EXPECT_EQ(cycle.lists(), 2U);
}

TEST_F(WatchCycleTest, GoneRightAfterTheListOnceAgainWaits) {
  StartWatch();
  EXPECT_TRUE(std::holds_alternative<ListStep>(End(Failed(410))));
  Watch(cycle.OnPage("11", "", clock.Now()));
  EXPECT_TRUE(std::holds_alternative<ListStep>(End(Failed(410))));
}

TEST_F(WatchCycleTest, AnExpiredContinueTokenListsEverythingFromScratchWithoutALimit) {
  cycle.Start();
  cycle.OnPage("8", "more", clock.Now());
  const ListStep list = List(ListFailed(Failed(410)));
  EXPECT_EQ(list.limit, 0U);
  EXPECT_EQ(list.continue_token, "");
  EXPECT_TRUE(list.first);
  // Also when that fails for another reason, until it has come.
  Wait(ListFailed(Failed(503)));
  EXPECT_EQ(List(Resume()).limit, 0U);
  cycle.OnPage("9", "", clock.Now());
  EXPECT_EQ(List(End(Failed(410))).limit, 500U);
}

TEST_F(WatchCycleTest, BackoffDoublesFrom800MillisecondsTo30SecondsWithAJitterOfOne) {
  cycle.Start();
  for (const int whole : {800, 1600, 3200, 6400, 12'800, 25'600, 30'000, 30'000}) {
    const Duration wait = Wait(ListFailed(Failed(503)));
    EXPECT_GE(wait, milliseconds(whole));
    EXPECT_LE(wait, milliseconds(2 * whole));
    clock.Advance(wait);
    List(Resume());
  }
}

TEST_F(WatchCycleTest, BackoffStartsAnewAfterTwoHealthyMinutes) {
  StartWatch();
  cycle.OnProgress("11");
  for (int i = 0; i < 6; ++i) {
    Wait(End(Failed(0)));
    Watch(Resume());
    cycle.OnProgress("12");
  }
  clock.Advance(minutes(2) + seconds(1));
  EXPECT_LE(Wait(End(Failed(0))), milliseconds(1600));
}

TEST_F(WatchCycleTest, AServerThatIsAwayIsAskedAtABoundedRate) {
  StartWatch();
  int attempts = 0;
  const MonotonicTime begin = clock.Now();
  CycleStep step = End(Failed(0));
  while (clock.Now() - begin < minutes(3)) {
    clock.Advance(Wait(step));
    ++attempts;
    step = std::holds_alternative<WatchStep>(Resume()) ? End(Failed(0)) : ListFailed(Failed(0));
  }
  EXPECT_LE(attempts, 12);
  EXPECT_GE(attempts, 7);
}

TEST_F(WatchCycleTest, TooManyRequestsWaitsAtLeastAsLongAsTheServerSays) {
  StartWatch();
  EXPECT_GE(Wait(End(Failed(429, seconds(45)))), seconds(45));
  EXPECT_EQ(Watch(Resume()).resource_version, "10");  // No list: it would add to the load.
  cycle.Start();
  EXPECT_GE(Wait(ListFailed(Failed(429, seconds(70)))), seconds(70));
}

TEST_F(WatchCycleTest, AWatchThatEndsAtOnceWithoutAWordHasFailed) {
  StartWatch();
  clock.Advance(milliseconds(900));
  EXPECT_GE(Wait(End(std::nullopt)), milliseconds(800));
  EXPECT_EQ(cycle.failures(), 1U);
}

TEST_F(WatchCycleTest, ARefusedWatchListsSoThatTheReasonShows) {
  StartWatch();
  Wait(End(Failed(403)));
  EXPECT_TRUE(List(Resume()).first);
}

TEST_F(WatchCycleTest, AnUnauthorizedWatchGoesOnWithANewToken) {
  StartWatch();
  Wait(End(Failed(401)));
  EXPECT_EQ(Watch(Resume()).resource_version, "10");
}

TEST_F(WatchCycleTest, ListsAnewAfterThreeWatchesThatToldNothing) {
  // For example from a version that the server, restored from a backup, has not reached yet.
  StartWatch();
  for (int i = 0; i < 2; ++i) {
    Wait(End(Failed(504)));
    Watch(Resume());
  }
  Wait(End(Failed(504)));
  EXPECT_TRUE(List(Resume()).first);
}

}  // namespace
}  // namespace optcache::kube
