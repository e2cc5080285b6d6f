#include "net/event_loop.h"

#include <unistd.h>

#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::pipe(ends.data()), 0);
    read = UniqueFd(ends[0]);
    write = UniqueFd(ends[1]);
  }
  void Write(const char* text) const { EXPECT_EQ(::write(write.get(), text, 1), 1); }
  UniqueFd read;
  UniqueFd write;
};

TEST(EventLoop, RunsWhatIsPostedInOrder) {
  EventLoop loop;
  std::vector<int> order;
  loop.Post([&] { order.push_back(1); });
  loop.Post([&] {
    loop.Post([&] {
      order.push_back(3);
      loop.Stop();
    });
    order.push_back(2);
  });
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(EventLoop, PostAndStopFromAnotherThread) {
  EventLoop loop;
  int count = 0;
  std::jthread other([&] {
    for (int i = 0; i < 1000; ++i)
      loop.Post([&] { ++count; });
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(count, 1000);
}

TEST(EventLoop, AStopBeforeRunIsNotLost) {
  EventLoop loop;
  loop.Stop();
  loop.Run();
}

TEST(EventLoop, TimersComeWhenTheyAreDueAndNotAsTheyWereMade) {
  EventLoop loop;
  std::vector<int> order;
  const Timer last = loop.After(std::chrono::hours(1), [&] { order.push_back(3); });
  const Timer first = loop.After(milliseconds(1), [&] { order.push_back(1); });
  const Timer second = loop.After(milliseconds(2), [&] {
    order.push_back(2);
    loop.Stop();
  });
  EXPECT_TRUE(first.active());
  loop.Run();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_FALSE(first.active());
  EXPECT_TRUE(last.active());
}

TEST(EventLoop, ADestroyedTimerDoesNotCall) {
  EventLoop loop;
  bool called = false;
  {
    const Timer timer = loop.After(Duration::zero(), [&] { called = true; });
  }
  Timer moved = loop.After(Duration::zero(), [&] { called = true; });
  moved = loop.After(milliseconds(1), [&] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(called);
}

TEST(EventLoop, ATimerMayReplaceItself) {
  EventLoop loop;
  int ticks = 0;
  Timer timer;
  std::function<void()> tick = [&] {
    if (++ticks == 3) return loop.Stop();
    timer = loop.After(Duration::zero(), tick);
  };
  timer = loop.After(Duration::zero(), tick);
  loop.Run();
  EXPECT_EQ(ticks, 3);
}

TEST(EventLoop, AWatchCallsAsLongAsThereIsSomethingToRead) {
  EventLoop loop;
  const Pipe pipe;
  pipe.Write("x");
  int calls = 0;
  const Watch watch = loop.WatchReadable(pipe.read.get(), [&] {
    // Read only the third time: until then the byte is still there.
    if (++calls < 3) return;
    char byte = 0;
    EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 1);
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(calls, 3);
}

TEST(EventLoop, AWatchCallsAtTheEndOfTheStream) {
  EventLoop loop;
  Pipe pipe;
  pipe.write.Reset();
  const Watch watch = loop.WatchReadable(pipe.read.get(), [&] { loop.Stop(); });
  loop.Run();
}

TEST(EventLoop, AWatchMayEndItselfAndLeavesTheDescriptorOpen) {
  EventLoop loop;
  const Pipe pipe;
  pipe.Write("x");
  int calls = 0;
  Watch watch;
  watch = loop.WatchReadable(pipe.read.get(), [&] {
    ++calls;
    watch.Cancel();
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(watch.active());
  char byte = 0;
  EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 1);
}

}  // namespace
}  // namespace optcache::net
