#pragma once

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"

namespace optcache::storage::internal {

// The first error of several threads. Thread-safe.
class FirstError {
 public:
  bool any() const { return any_; }
  void Set(Status status) {
    const MutexLock lock(mutex_);
    if (!any_) status_ = std::move(status);
    any_ = true;
  }
  Status Take() {
    const MutexLock lock(mutex_);
    return std::move(status_);
  }

 private:
  std::atomic<bool> any_ = false;
  Mutex mutex_;
  Status status_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage::internal
