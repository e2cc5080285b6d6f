#pragma once

// A thread that looks around when something is due.

#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace optcache::storage::internal {

// Thread-safe. Its owner stops it before what `look` uses goes away.
class AlarmThread {
 public:
  // `look` does what is due and says when to come again; it is called on the thread, without locks.
  // `clock` must be the machine's.
  AlarmThread(const Clock& clock, std::function<MonotonicTime(MonotonicTime now)> look);
  ~AlarmThread() { Stop(); }
  AlarmThread(const AlarmThread&) = delete;
  AlarmThread& operator=(const AlarmThread&) = delete;

  // Something may be due at `at`, earlier than it was told.
  void WakeAt(MonotonicTime at);
  // `look` has returned for the last time. Calling it again does nothing.
  void Stop();

 private:
  void Run();

  const Clock& clock_;
  const std::function<MonotonicTime(MonotonicTime)> look_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  MonotonicTime next_ GUARDED_BY(mutex_){};
  std::jthread thread_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage::internal
