#pragma once

// For tests of a short deadline within which something else has to happen first: a busy machine may
// miss it.

#include <chrono>

#include "base/clock.h"

namespace optcache {

// Does `attempt` hold with some deadline? It gets `first`, and then one that is four times as long
// each time, up to more than 20 seconds. It returns whether it saw what it tests: false, without a
// failed expectation, where the machine may have been too slow for this deadline.
template <typename Attempt>
bool HoldsForSomeDeadline(Duration first, Attempt&& attempt) {
  constexpr Duration kLongest = std::chrono::seconds(20);
  for (Duration deadline = first;; deadline *= 4) {
    if (attempt(deadline)) return true;
    if (deadline > kLongest) return false;
  }
}

}  // namespace optcache
