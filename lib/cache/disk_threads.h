#pragma once

// A few threads for what waits for a disk. Reads, which somebody waits for, go before writes, but
// for one; and writes never have all the threads.

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace optcache::cache {

// Thread-safe. The destructor waits for the jobs under way and drops those that have not begun.
class DiskThreads {
 public:
  struct Options {
    std::size_t threads = 4;
    std::size_t max_writing = 2;    // of the threads; at least 1
    std::size_t max_waiting = 512;  // reads, and writes, beside those under way
  };
  DiskThreads(const Clock& clock, const Options& options);
  ~DiskThreads();
  DiskThreads(const DiskThreads&) = delete;
  DiskThreads& operator=(const DiskThreads&) = delete;

  // `job` runs on one of the threads. kUnavailable: too many wait.
  Status Read(std::function<void()> job);
  Status Write(std::function<void()> job);
  // What gives room back goes before writes, as one of them, and is never refused: nobody would do
  // it later. There are at most as many as the caller has files and holes.
  void Clean(std::function<void()> job);

 private:
  using Jobs = std::deque<std::function<void()>>;

  Status Add(Jobs& jobs, std::function<void()> job) REQUIRES(mutex_);
  void Work(const std::stop_token& stop);

  const Clock& clock_;
  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  Jobs reads_ GUARDED_BY(mutex_);
  Jobs writes_ GUARDED_BY(mutex_);
  Jobs cleans_ GUARDED_BY(mutex_);
  std::size_t writing_ GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace optcache::cache
