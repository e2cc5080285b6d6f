#pragma once

// A thread for what would hold up the event loop: reading and checking files of many megabytes.

#include <deque>
#include <functional>
#include <thread>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "net/event_loop.h"

namespace optcache::net {

// Used on the loop's thread only. Its destructor waits for the job under way; jobs that have not
// begun, and the ends of those that have, are dropped.
class WorkerThread {
 public:
  // `max_waiting` jobs may wait for the one under way.
  WorkerThread(EventLoop& loop, const Clock& clock, std::size_t max_waiting = 64);
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Calls `job` on the thread and then `end` on the loop's. kResourceExhausted: too many wait.
  Status Run(std::function<void()> job, std::function<void()> end);

 private:
  struct Job {
    std::function<void()> job;
    std::function<void()> end;
  };
  void Work(const std::stop_token& stop);

  EventLoop& loop_;
  const Clock& clock_;
  const std::size_t max_waiting_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  std::jthread thread_;  // it uses all of the above
  CallbackGuard guard_;  // last
};

}  // namespace optcache::net
