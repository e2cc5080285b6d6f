#pragma once

// How fast a store delivers, and how many reads it takes to have all of that. Pure.

#include <cstddef>
#include <optional>

#include "base/bytes.h"
#include "base/clock.h"

namespace optcache::sidecar {

// Two things limit a store: a bandwidth that all reads share, or what one read gets. By the first,
// a read that is due soon comes sooner if others wait; by the second, that gains nothing. So the
// bytes that come while reads are held back are compared with those that come while none is: if
// they are fewer, *width*, the number of reads that always run, is doubled, and it is halved after
// a while to see whether fewer do.
//
// Where a store takes long to answer, few reads end in a second, and unlike sizes hide how many
// more could. There the time of each read tells it: if most take far longer than their bytes need,
// they wait for answers and not for each other, and nothing is held back. Reads that are late at
// the same time count as one: a pause makes all of them late.
//
// What comes while none is held back may change unseen. So it is measured again from time to time:
// nothing is known until then, and so nothing held back. Not thread-safe.
class StoreSpeed {
 public:
  enum class Load {
    kLight,  // there are fewer reads than places
    kFull,   // all places are taken
    kHeld,   // reads wait though there are places
  };

  // What is remembered of a read while it runs.
  struct Begun {
    std::size_t width = 0;  // 0: it tells nothing
    MonotonicTime late_at{};
  };

  explicit StoreSpeed(std::size_t places) : places_(places) {}

  // `arrived` bytes have come in all; from now on the load is `load`.
  void Note(MonotonicTime now, ByteCount arrived, Load load);

  Begun Begin(ByteCount bytes, MonotonicTime now) const;
  void NoteEnd(const Begun& begun, MonotonicTime now);

  // How long the store takes to send as much. Nothing: it is not known, as all places have not been
  // taken for long enough.
  std::optional<Duration> TimeFor(ByteCount bytes) const;
  // 0: it is not known.
  double BytesPerSecond() const;
  std::size_t width() const { return width_; }

 private:
  // Bytes in the last seconds, the older the less.
  struct Rate {
    void Add(double more_bytes, double more_seconds);
    bool known() const;
    double per_second() const { return bytes / seconds; }
    double bytes = 0;
    double seconds = 0;
  };
  bool IsTooNarrow() const;
  void Judge();
  void SetWidth(std::size_t width);

  std::size_t places_;
  std::size_t width_ = 1;
  Load load_ = Load::kLight;
  MonotonicTime noted_at_{};
  ByteCount arrived_ = 0;
  Rate full_;
  Rate held_;                 // with this width, since the last measurement
  double before_ = 0;         // what full_ was at the measurement before
  bool measuring_ = true;     // full_, again
  double trust_seconds_ = 0;  // for which a measurement is believed while reads are held back
  double held_seconds_ = 0;   // that they have been since it
  double width_seconds_ = 0;  // that the width has been used for
  double late_share_ = 0;     // of the last reads with this width
  MonotonicTime late_{};      // the last of them that was late
};

}  // namespace optcache::sidecar
