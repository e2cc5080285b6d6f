#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/random.h"

namespace optcache {

struct BackoffOptions {
  Duration first = std::chrono::milliseconds(100);
  Duration limit = std::chrono::seconds(30);
};

// Waits that double up to a limit, each drawn from [half, whole] so that clients spread out.
// Not thread-safe: a value with one owner.
class Backoff {
 public:
  Backoff(BackoffOptions options, std::uint64_t seed)
      : options_(options), next_(options.first), random_(seed) {}

  Duration Next() {
    const double share = 0.5 + random_.Unit() / 2;
    const auto wait = std::chrono::duration_cast<Duration>(next_ * share);
    next_ = std::min(next_ * 2, options_.limit);
    return wait;
  }
  void Reset() { next_ = options_.first; }

 private:
  BackoffOptions options_;
  Duration next_;
  Random random_;
};

}  // namespace optcache
