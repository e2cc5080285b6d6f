#pragma once

#include <atomic>

#include "base/clock.h"

namespace optcache {

// A clock that a test moves by hand. Thread-safe.
class ManualClock final : public Clock {
 public:
  MonotonicTime Now() const override { return MonotonicTime(Duration(now_.load())); }
  double UnixSeconds() const override { return 1.8e9 + ToSeconds(Duration(now_.load())); }
  void Advance(Duration by) { now_ += by.count(); }

 private:
  std::atomic<Duration::rep> now_ = 1'000'000'000;
};

}  // namespace optcache
