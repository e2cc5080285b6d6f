#pragma once

// One pass of one rank: what it will read, what it has asked for and been given, and what is staged
// for it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/status.h"
#include "sidecar/fetch/held_sample.h"
#include "sidecar/fetch/read_pace.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// Which part of a rank's list a pass reads, as announced or as predicted.
struct PassSpan {
  PassNumber pass = 0;
  std::uint64_t epoch = 0;  // what the sampler's seed is made of
  std::uint64_t begin = 0;  // indices into the rank's list
  std::uint64_t end = 0;
  friend bool operator==(const PassSpan&, const PassSpan&) = default;
};

// The longest list of a rank that is kept track of.
inline constexpr std::uint64_t kPassLengthMax = 1ULL << 32U;

// Indices are places in the rank's list, so that the position of index i is i * world + rank. Not
// thread-safe.
class Pass {
 public:
  // DataLoader workers ask out of order, by as much as is with them (`behind`, in samples) or this
  // much: what a trainer has left further behind it will not ask for again.
  static constexpr std::uint64_t kReorderMin = ReadPace::kReorderMin;
  // A read farther ahead than that is one look at one sample, unless this many follow each other
  // and none is nearer: then the trainer has skipped what lies before the first of them. The first
  // read of a pass may be anywhere: a sidecar that was restarted hears of the pass in its middle.
  static constexpr std::uint64_t kSkipReads = 32;

  Pass(const PassSpan& span, std::uint64_t behind)
      : span_(span),
        reorder_max_(std::max(behind, kReorderMin)),
        frontier_(span.begin),
        low_water_(span.begin),
        asked_until_(span.begin),
        stops_at_(kNever) {}

  const PassSpan& span() const { return span_; }

  // --- Where it ends
  // Not called: at the span's end. It is taken to end before index `stops_at`: nothing from there
  // on is staged, unless the trainer asks for it by more than `slack` (its workers may ask ahead).
  void StopAt(std::uint64_t stops_at, std::uint64_t slack);
  // The trainer goes on beyond that.
  bool went_on() const { return went_on_; }
  // Where it is taken to end now.
  std::uint64_t end() const { return std::min(span_.end, went_on_ ? kNever : stops_at_); }

  // --- The order
  // Not called: not replayed yet. The order has at least span().end ids.
  void SetOrder(std::shared_ptr<const RankPass> order) { order_ = std::move(order); }
  const RankPass* order() const { return order_.get(); }
  // The order is known only as far as the trainer goes: its next ids, from index `first` on. What
  // is known already is left out; kInvalidArgument if there is a gap before `first`.
  Status Append(std::uint64_t first, std::span<const SampleId> ids);
  // The order is not what the trainer reads: nothing is predicted from now on, nothing staged.
  void Distrust();
  bool trusted() const { return trusted_; }
  // May positions be predicted?
  bool predicted() const { return trusted_ && order_ != nullptr; }
  // Is `id` what stands at `index`? True as long as nothing is known.
  bool Agrees(std::uint64_t index, SampleId id) const;
  // The earliest index with that id that nobody has asked for.
  std::optional<std::uint64_t> FindUnasked(SampleId id) const;

  // An id was asked for that FindUnasked does not know. True once there are too many of them for
  // the order to be the trainer's.
  bool NoteUnpredicted();

  // --- What the trainer does
  bool Contains(std::uint64_t index) const { return index >= span_.begin && index < span_.end; }
  void MarkAsked(std::uint64_t index);
  // The batch that asked died unanswered.
  void MarkUnasked(std::uint64_t index);
  void MarkDelivered(std::uint64_t index);
  bool asked(std::uint64_t index) const { return Test(asked_, index); }
  std::uint64_t delivered() const { return delivered_count_; }
  // All before it are delivered, or left behind.
  std::uint64_t low_water() const { return low_water_; }

  // --- What is staged
  // The next index to stage; nothing at the end of the pass, or if nothing is predicted.
  std::optional<std::uint64_t> NextToStage();
  // All before it were staged, asked for, or passed over.
  std::uint64_t frontier() const { return frontier_; }
  HeldSampleRef Staged(std::uint64_t index) const;
  // The sample has its memory.
  void Stage(std::uint64_t index, HeldSampleRef sample);
  // It cannot be staged, and will be read when it is asked for.
  void PassOver(std::uint64_t index);
  void Unstage(std::uint64_t index);
  void UnstageAll();
  std::size_t staged() const { return staged_.size(); }
  // What of it lies in the arena.
  ByteCount staged_arena_bytes() const { return staged_arena_bytes_; }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  bool Test(const std::vector<bool>& bits, std::uint64_t index) const;
  void Set(std::vector<bool>& bits, std::uint64_t index, bool value) const;
  void MoveTo(std::uint64_t index);

  struct StagedSample {
    HeldSampleRef sample;
    ByteCount arena_bytes = 0;
  };

  PassSpan span_;
  std::uint64_t reorder_max_;
  std::shared_ptr<const RankPass> order_;  // shared with nobody once made; const data
  std::shared_ptr<RankPass> growing_;      // the same, if it grows; without by_id
  bool trusted_ = true;
  std::vector<bool> asked_;      // by index - span_.begin; grows as needed
  std::vector<bool> delivered_;  // the same
  std::uint64_t delivered_count_ = 0;
  std::uint64_t unpredicted_ = 0;
  std::uint64_t frontier_;     // all before it were staged, asked for, or passed over
  std::uint64_t low_water_;    // all before it were delivered, or left behind
  std::uint64_t asked_until_;  // nothing from here on has been asked for, but for far reads
  struct FarReads {
    std::uint64_t reads = 0;  // in a row
    std::uint64_t first = 0;  // the first of them in the order
  };
  FarReads far_;
  std::uint64_t stops_at_;  // StopAt
  std::uint64_t slack_ = 0;
  bool went_on_ = false;
  std::map<std::uint64_t, StagedSample> staged_;
  ByteCount staged_arena_bytes_ = 0;
};

}  // namespace optcache::sidecar
