#pragma once

// Which machines have been cordoned long enough to be meant.

#include <map>
#include <set>
#include <string>

#include "base/clock.h"

namespace optcache::reconcile {

// A cordon may be a slip, and what `kubectl drain` evicts reads on for a while.
inline constexpr Duration kCordonIsMeantAfter = std::chrono::seconds(30);

// Not thread-safe: its owner serialises.
class Cordons {
 public:
  // `cordoned`: all Kubernetes nodes that are so now.
  void Observe(const std::set<std::string>& cordoned, MonotonicTime now);

  // Those that have been observed so ever since kCordonIsMeantAfter ago.
  std::set<std::string> Meant(MonotonicTime now) const;

 private:
  std::map<std::string, MonotonicTime> since_;
};

}  // namespace optcache::reconcile
