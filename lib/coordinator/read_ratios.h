#pragma once

// The hit ratio of a dataset as observed, and as the plan in force predicted it of those same
// reads: of the last whole pass of each stream, or where there is none of the last 15 minutes.

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "coordination/state.h"
#include "coordination/status.h"

namespace optcache::coordination {

// From whole passes; nothing is observed where there are none.
HitRatios RatiosOfPasses(const std::vector<PassStatus>& passes, ByteCount mean_sample_bytes);

// The reads of the last 15 minutes, by minutes, from counters that only grow. Not thread safe.
class RecentReads {
 public:
  // Whether a minute has passed since what was taken last.
  bool IsDue(MonotonicTime now) const;
  // The counters of all nodes together, also of those that have gone.
  void Take(const DatasetReport& sum, MonotonicTime now);
  // A node is heard of for the first time: what it has counted before is not recent.
  void LeaveOut(const DatasetReport& counted);
  // Of the reads since the oldest minute that is kept, up to `sum`.
  HitRatios Ratios(const DatasetReport& sum) const;

 private:
  struct Counts {
    std::uint64_t reads = 0;
    std::uint64_t hits = 0;
    std::uint64_t covered_reads = 0;  // by a plan
    std::uint64_t covered_hits = 0;   // of those, as they were answered
    std::uint64_t planned_hits = 0;   // and as the plan predicted them
  };
  struct Minute {
    MonotonicTime at;
    Counts counts;
  };
  static Counts CountsOf(const DatasetReport& sum);
  static Counts Less(const Counts& all, const Counts& before);

  std::deque<Minute> minutes_;
};

}  // namespace optcache::coordination
