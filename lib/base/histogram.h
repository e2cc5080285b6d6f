#pragma once

// How often a value was how large, for Prometheus: fixed bounds, so that processes can be summed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/counters.h"

namespace optcache {

// A value with one owner; not thread-safe.
class Histogram {
 public:
  // Upper bounds, ascending; what is above the last is counted, too. Prometheus' usual ones for
  // seconds: kSecondsBounds.
  explicit Histogram(std::span<const double> bounds);

  void Observe(double value);

  std::uint64_t count() const { return count_; }
  double sum() const { return sum_; }

  // As Prometheus wants them: NAME_bucket with the label "le", cumulative; NAME_sum; NAME_count.
  // The catalog names NAME alone.
  void Visit(const CounterVisitor& visitor, std::string_view name,
             const MetricLabels& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // one more than bounds
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

inline constexpr double kSecondsBounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                            0.5,   1,      2.5,   5,    10,    30,   60};

}  // namespace optcache
