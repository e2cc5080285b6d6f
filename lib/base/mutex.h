#pragma once

// A mutex that clang's thread-safety analysis understands.

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define OPTCACHE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define OPTCACHE_THREAD_ATTRIBUTE(x)
#endif
#define CAPABILITY(x) OPTCACHE_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY OPTCACHE_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) OPTCACHE_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES(...) OPTCACHE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) OPTCACHE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) OPTCACHE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define EXCLUDES(...) OPTCACHE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace optcache {

class CAPABILITY("mutex") Mutex {
 public:
  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits are bounded: there is no Wait without a limit.
class CondVar {
 public:
  // False when `at` came first. May wake without reason: test the condition in a loop.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point at) REQUIRES(mutex) {
    return variable_.wait_until(mutex, at) == std::cv_status::no_timeout;
  }
  void NotifyOne() { variable_.notify_one(); }
  void NotifyAll() { variable_.notify_all(); }

 private:
  std::condition_variable_any variable_;
};

}  // namespace optcache
