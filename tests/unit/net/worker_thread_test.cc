#include "net/worker_thread.h"

#include <algorithm>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

TEST(WorkerThread, DoesTheJobElsewhereAndItsEndOnTheLoop) {
  EventLoop loop;
  WorkerThread worker(loop, SystemClock());
  const auto here = std::this_thread::get_id();
  std::thread::id job;
  std::thread::id end;
  ASSERT_TRUE(
      worker
          .Run([&] { job = std::this_thread::get_id(); }, [&] { end = std::this_thread::get_id(); })
          .ok());
  RunUntil(loop, [&] { return end != std::thread::id(); });
  EXPECT_EQ(end, here);
  EXPECT_NE(job, here);
}

TEST(WorkerThread, KeepsTheOrder) {
  EventLoop loop;
  WorkerThread worker(loop, SystemClock());
  std::vector<int> ends;
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(worker.Run([] {}, [&ends, i] { ends.push_back(i); }).ok());
  RunUntil(loop, [&] { return ends.size() == 10; });
  EXPECT_TRUE(std::ranges::is_sorted(ends));
}

TEST(WorkerThread, TakesOnlySoManyJobs) {
  EventLoop loop;
  std::promise<void> go;
  WorkerThread worker(loop, SystemClock());
  ASSERT_TRUE(worker.Run([wait = go.get_future().share()] { wait.wait(); }, [] {}).ok());
  Status last;
  for (int i = 0; i < 200 && last.ok(); ++i)
    last = worker.Run([] {}, [] {});
  go.set_value();
  EXPECT_EQ(last.code(), Code::kResourceExhausted);
}

TEST(WorkerThread, WhatEndsAfterItDoesNotEnd) {
  EventLoop loop;
  bool ended = false;
  std::promise<void> done;
  {
    WorkerThread worker(loop, SystemClock());
    ASSERT_TRUE(worker.Run([&] { done.set_value(); }, [&] { ended = true; }).ok());
    done.get_future().wait();
  }
  loop.Post([&loop] { loop.Stop(); });
  loop.Run();
  EXPECT_FALSE(ended);
}

}  // namespace
}  // namespace optcache::net
