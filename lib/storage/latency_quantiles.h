#pragma once

// How long reads of a store take, by the size of what is read: a running estimate of quantiles.
//
// A histogram for each class of sizes, with bounds that grow by the eighth root of two, so that a
// quantile is too high by 9 % at most (as in HdrHistogram, Tene 2012). When a class has gathered
// enough, all its counts are halved: what was long ago fades.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"

namespace optcache::storage {

// Not thread-safe: a value with one owner.
class LatencyQuantiles {
 public:
  LatencyQuantiles();

  void Observe(ByteCount bytes, Duration latency);

  // At least `share` (0 to 1) of what was observed for reads of that size took this long or less;
  // nothing while fewer than `observed_min` were.
  std::optional<Duration> Quantile(ByteCount bytes, double share, double observed_min) const;

  // Sizes up to 16 KiB, 64 KiB, ... 16 MiB, and beyond.
  static constexpr std::size_t kClasses = 7;
  static std::size_t ClassOf(ByteCount bytes);

 private:
  struct Class {
    std::vector<double> counts;
    double total = 0;
  };
  std::array<Class, kClasses> classes_;
};

}  // namespace optcache::storage
