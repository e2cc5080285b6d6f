#include "storage/internal/alarm_thread.h"

#include <algorithm>
#include <utility>

namespace optcache::storage::internal {
namespace {

constexpr Duration kIdleLook = std::chrono::seconds(10);  // it looks around this often anyway

}  // namespace

AlarmThread::AlarmThread(const Clock& clock, std::function<MonotonicTime(MonotonicTime)> look)
    : clock_(clock), look_(std::move(look)) {
  const MutexLock lock(mutex_);
  next_ = clock_.Now() + kIdleLook;
  thread_ = std::jthread([this] { Run(); });
}

void AlarmThread::WakeAt(MonotonicTime at) {
  {
    const MutexLock lock(mutex_);
    if (at >= next_) return;
    next_ = at;
  }
  changed_.NotifyAll();
}

void AlarmThread::Stop() {
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

void AlarmThread::Run() {
  while (true) {
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && clock_.Now() < next_)
        changed_.WaitUntil(mutex_, next_);
      if (stopping_) return;
      next_ = clock_.Now() + kIdleLook;  // WakeAt during `look` may ask for less
    }
    const MonotonicTime again = look_(clock_.Now());
    const MutexLock lock(mutex_);
    next_ = std::min(next_, again);
  }
}

}  // namespace optcache::storage::internal
