#include "cache/disk_threads.h"

#include <atomic>
#include <latch>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::cache {
namespace {

TEST(DiskThreads, RunsWhatItIsGiven) {
  std::latch done(20);
  DiskThreads threads(SystemClock(), {});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(threads.Read([&done] { done.count_down(); }).ok());
    ASSERT_TRUE(threads.Write([&done] { done.count_down(); }).ok());
  }
  done.wait();
}

// Writes hold their share of the threads, and a read still has one.
TEST(DiskThreads, ReadsDoNotWaitForWrites) {
  std::latch read_done(1);
  std::latch writes_done(4);
  DiskThreads threads(SystemClock(), {.threads = 2, .max_writing = 1});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(threads
                    .Write([&] {
                      read_done.wait();
                      writes_done.count_down();
                    })
                    .ok());
  }
  ASSERT_TRUE(threads.Read([&read_done] { read_done.count_down(); }).ok());
  writes_done.wait();
}

// However much is read, one thread writes.
TEST(DiskThreads, WritesDoNotWaitForAllReads) {
  std::latch begun(1);
  std::latch go_on(1);
  std::latch done(3);
  std::vector<char> order;
  DiskThreads threads(SystemClock(), {.threads = 1, .max_writing = 1});
  ASSERT_TRUE(threads
                  .Read([&] {
                    begun.count_down();
                    go_on.wait();
                  })
                  .ok());
  begun.wait();
  const auto job = [&](char what) {
    return [&order, &done, what] {
      order.push_back(what);
      done.count_down();
    };
  };
  ASSERT_TRUE(threads.Read(job('r')).ok());
  ASSERT_TRUE(threads.Read(job('r')).ok());
  ASSERT_TRUE(threads.Write(job('w')).ok());
  go_on.count_down();
  done.wait();
  EXPECT_EQ(order.front(), 'w');
}

TEST(DiskThreads, RefusesWhatIsTooMuch) {
  std::latch begun(1);
  std::latch go_on(1);
  DiskThreads threads(SystemClock(), {.threads = 1, .max_writing = 1, .max_waiting = 2});
  ASSERT_TRUE(threads
                  .Read([&] {
                    begun.count_down();
                    go_on.wait();
                  })
                  .ok());
  begun.wait();
  EXPECT_TRUE(threads.Read([] {}).ok());
  EXPECT_TRUE(threads.Read([] {}).ok());
  EXPECT_EQ(threads.Read([] {}).code(), Code::kUnavailable);
  EXPECT_TRUE(threads.Write([] {}).ok());
  go_on.count_down();
}

TEST(DiskThreads, CleaningIsNeverRefusedAndGoesBeforeWrites) {
  constexpr int kMany = 1000;
  std::latch begun(1);
  std::latch go_on(1);
  std::latch done(kMany + 1);
  std::atomic<int> cleaned = 0;
  int cleaned_before_write = -1;
  DiskThreads threads(SystemClock(), {.threads = 1, .max_writing = 1, .max_waiting = 2});
  ASSERT_TRUE(threads
                  .Write([&] {
                    begun.count_down();
                    go_on.wait();
                  })
                  .ok());
  begun.wait();
  ASSERT_TRUE(threads
                  .Write([&] {
                    cleaned_before_write = cleaned;
                    done.count_down();
                  })
                  .ok());
  for (int i = 0; i < kMany; ++i) {
    threads.Clean([&] {
      ++cleaned;
      done.count_down();
    });
  }
  go_on.count_down();
  done.wait();
  EXPECT_EQ(cleaned_before_write, kMany);
}

TEST(DiskThreads, ItsEndWaitsForWhatIsUnderWayOnly) {
  std::latch begun(1);
  bool ended = false;
  {
    DiskThreads threads(SystemClock(), {.threads = 1, .max_writing = 1});
    ASSERT_TRUE(threads
                    .Read([&] {
                      begun.count_down();
                      ended = true;
                    })
                    .ok());
    begun.wait();
  }
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace optcache::cache
