#pragma once

// How fast a rank asks for samples, and so when it will ask for one that lies ahead. Pure.

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"

namespace optcache::sidecar {

// Places count the reads of a rank, one pass after another. The pace is that of the last few
// seconds; pauses, as between two passes, do not slow it down. Before a second of reading it is
// taken to be so fast that all is due at once, in order, and before the first sample nothing is due
// for long. A read far from the others does not tell where the rank is: the rank's place
// moves there only if no read is near the old one for a second. Not thread-safe.
class ReadPace {
 public:
  using Place = std::uint64_t;
  static constexpr Place kReorderMin = 1024;

  // The sample before `front` is asked for. One that lies far ahead is one sample read, too.
  void OnAsked(Place front, MonotonicTime now);
  // A pass begins: all before `front` have been asked for, or never are. Workers ask in another
  // order, by up to `reorder` places.
  void SkipTo(Place front, Place reorder = kReorderMin) {
    front_ = front;
    reorder_ = reorder;
    near_at_.reset();
  }

  // When the sample at `place` will be asked for, or when it was.
  MonotonicTime DueAt(Place place, MonotonicTime now) const;

 private:
  double SamplesPerSecond() const;

  Place reorder_ = kReorderMin;
  Place front_ = 0;
  std::optional<MonotonicTime> near_at_;  // of the last read near it; null: none since SkipTo
  MonotonicTime asked_at_{};
  double samples_ = 0;  // of the last seconds, the older the less
  double seconds_ = 0;
};

// When a read is due: at a place of its rank. Without a pace it is not known.
struct ReadDue {
  std::shared_ptr<const ReadPace> pace;
  ReadPace::Place place = 0;
};

}  // namespace optcache::sidecar
