#include "cli/terminal/stop_wait.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace optcache::cli {

StopWait::StopWait() {
  sigemptyset(&awaited_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&awaited_, signal);
  ::pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
}

StopWait::~StopWait() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool StopWait::For(Duration time) {
  const MonotonicTime end = SystemClock().Now() + time;
  while (true) {
    const auto left =
        std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(end - SystemClock().Now()));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (left - seconds).count()};
    if (::sigtimedwait(&awaited_, nullptr, &limit) > 0) return false;
    if (errno != EINTR) return true;
  }
}

}  // namespace optcache::cli
