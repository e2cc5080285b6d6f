#pragma once

// When a Dataset with spec.index.interval is indexed again. Its time is cut into periods as long as
// the interval, and it is indexed once a period. Where periods begin depends on the Dataset's uid:
// Datasets that are made together are not indexed together.

#include <cstdint>
#include <string>
#include <string_view>

namespace optcache::reconcile {

// The begin in Unix seconds of the period that `now` is in. 0 without an interval.
std::int64_t PeriodAt(std::string_view uid, std::int64_t interval_seconds, double now);

// Names one indexing: status.indexHash, and how the name of its Job ends.
struct IndexMark {
  std::string hash;         // of all that the manifest depends on, see IndexHash
  std::int64_t period = 0;  // 0: of none

  friend bool operator==(const IndexMark&, const IndexMark&) = default;
};

// "2697fdd8e7", or "2697fdd8e7-1795788000" with a period.
std::string ToText(const IndexMark& mark);
// What is no mark has an empty hash.
IndexMark ParseIndexMark(std::string_view text);

// Whether what was indexed as `last` is to be indexed again as `wanted`, both of one hash.
bool IsDue(const IndexMark& last, const IndexMark& wanted, std::int64_t interval_seconds);

}  // namespace optcache::reconcile
