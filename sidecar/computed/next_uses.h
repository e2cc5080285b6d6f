#pragma once

// When each computed sample is read next, by what its readers have announced: the present and the
// next pass of each.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "base/clock.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/prefetch/reader_table.h"

namespace optcache::sidecar {

// Nanoseconds; compared with those of other samples only, and good until the next Refresh.
using UseTime = std::int64_t;
inline constexpr UseTime kNoUse = std::numeric_limits<UseTime>::max();  // known of

// Reads of several readers are put in one order by how fast each read until now. For one reader
// that order is exactly its own. Not thread-safe: belongs to the event loop's thread.
class NextUses {
 public:
  NextUses(const ReaderTable& readers, const DatasetPort& dataset, const Alarms& alarms)
      : readers_(readers), dataset_(dataset), alarms_(alarms) {}

  // Has anything begun, ended or become known since the last Refresh?
  bool Stale() const { return Signature() != seen_; }
  // Takes the readers' present speed and place as those from which times are predicted.
  void Refresh();

  // A reader has asked for a sample.
  void NoteRead(ReaderId reader);

  // The next read of `id` that nobody has asked for.
  UseTime Of(SampleId id) const;
  // The same for all samples; O(samples + what is known of the orders).
  std::vector<UseTime> OfAll() const;

  // One stream reads, and no sample twice in a pass. Then values whose next use is known are worth
  // the same, whichever is used first: each is used once a pass.
  bool steady() const { return steady_; }

 private:
  struct Pace {
    PassNumber pass = 0;
    MonotonicTime begun{};
    std::uint64_t reads = 0;  // in this pass
    Duration step{};          // between two of them
    // At `anchor` it has read `read_at_anchor` of the pass.
    MonotonicTime anchor{};
    std::uint64_t read_at_anchor = 0;
  };
  using Seen = std::vector<std::uint64_t>;

  bool Reads(const RankReader& reader) const;
  Seen Signature() const;
  void Measure(ReaderId id, const RankReader& reader);
  bool FindSteady() const;
  UseTime TimeOf(const Pace& pace, std::uint64_t reads) const;
  template <typename Action>
  void ForEachPass(const Action& action) const;

  const ReaderTable& readers_;
  const DatasetPort& dataset_;
  const Alarms& alarms_;
  std::map<ReaderId, Pace> paces_;
  Seen seen_;
  bool steady_ = false;
};

}  // namespace optcache::sidecar
