#include "net/periodic_timer.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

// Many intervals, for a call that must not come.
void RunForAWhile(EventLoop& loop) {
  RunFor(loop, milliseconds(20));
}

TEST(PeriodicTimer, CallsAgainAndAgain) {
  EventLoop loop;
  int calls = 0;
  const PeriodicTimer timer(loop, milliseconds(1), [&] { ++calls; });
  EXPECT_EQ(calls, 0);
  RunUntil(loop, [&] { return calls >= 5; });
}

TEST(PeriodicTimer, WaitsTheIntervalBeforeEachCall) {
  EventLoop loop;
  std::vector<MonotonicTime> calls = {SystemClock().Now()};
  const PeriodicTimer timer(loop, milliseconds(10), [&] { calls.push_back(SystemClock().Now()); });
  RunUntil(loop, [&] { return calls.size() >= 4; });
  for (std::size_t i = 1; i < calls.size(); ++i)
    EXPECT_GE(calls[i] - calls[i - 1], milliseconds(10));
}

TEST(PeriodicTimer, EndsWithItsObject) {
  EventLoop loop;
  int calls = 0;
  {
    const PeriodicTimer timer(loop, milliseconds(1), [&] { ++calls; });
    RunUntil(loop, [&] { return calls > 0; });
  }
  const int before = calls;
  RunForAWhile(loop);
  EXPECT_EQ(calls, before);
}

TEST(PeriodicTimer, EndsWhenItIsCancelled) {
  EventLoop loop;
  int calls = 0;
  PeriodicTimer timer(loop, milliseconds(1), [&] { ++calls; });
  timer.Cancel();
  timer.Cancel();
  RunForAWhile(loop);
  EXPECT_EQ(calls, 0);
}

TEST(PeriodicTimer, ItsCallMayCancelIt) {
  EventLoop loop;
  int calls = 0;
  PeriodicTimer timer;
  timer = PeriodicTimer(loop, milliseconds(1), [&] {
    ++calls;
    timer.Cancel();
  });
  RunForAWhile(loop);
  EXPECT_EQ(calls, 1);
}

// What the callback holds stays until it returns.
TEST(PeriodicTimer, ItsCallMayDestroyIt) {
  EventLoop loop;
  std::optional<PeriodicTimer> timer;
  const auto kept = std::make_shared<int>(0);
  timer.emplace(loop, milliseconds(1), [&timer, held = kept] {
    timer.reset();
    ++*held;
  });
  RunForAWhile(loop);
  EXPECT_EQ(*kept, 1);
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(PeriodicTimer, ItsCallMayReplaceIt) {
  EventLoop loop;
  int first = 0;
  int second = 0;
  PeriodicTimer timer;
  timer = PeriodicTimer(loop, milliseconds(1), [&] {
    ++first;
    timer = PeriodicTimer(loop, milliseconds(1), [&] { ++second; });
  });
  RunUntil(loop, [&] { return second >= 2; });
  EXPECT_EQ(first, 1);
}

TEST(PeriodicTimer, GoesOnWhereItIsMoved) {
  EventLoop loop;
  int calls = 0;
  PeriodicTimer first(loop, milliseconds(1), [&] { ++calls; });
  const PeriodicTimer second = std::move(first);
  RunUntil(loop, [&] { return calls >= 2; });
}

}  // namespace
}  // namespace optcache::net
