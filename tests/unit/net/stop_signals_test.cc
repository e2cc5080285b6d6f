#include "net/stop_signals.h"

#include <csignal>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

// What was sent is pending still, since nobody has read which signal it was.
void TakePending() {
  sigset_t all;
  sigfillset(&all);
  const timespec now{};
  while (::sigtimedwait(&all, nullptr, &now) > 0) {
  }
}

// To this thread alone: those of other tests have not blocked the signals.
TEST(StopSignals, CallOnce) {
  BlockStopSignals();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    EventLoop loop;
    int calls = 0;
    const StopSignals signals(loop, [&] { ++calls; });
    ASSERT_EQ(::raise(signal), 0);
    RunUntil(loop, [&] { return calls > 0; });
    ASSERT_EQ(::raise(signal), 0);
    loop.Stop();
    loop.Run();
    EXPECT_EQ(calls, 1) << "signal " << signal;
    TakePending();
  }
}

}  // namespace
}  // namespace optcache::net
