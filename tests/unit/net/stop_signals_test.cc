#include "net/stop_signals.h"

#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

TEST(StopSignals, CallOnce) {
  BlockStopSignals();
  EventLoop loop;
  int calls = 0;
  const StopSignals signals(loop, [&] { ++calls; });
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  RunUntil(loop, [&] { return calls > 0; });
  ASSERT_EQ(::kill(::getpid(), SIGINT), 0);
  loop.Stop();
  loop.Run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace optcache::net
