#pragma once

// Which computed values stay: MIN with bypass (L. A. Belady, 1966) by their next use.

#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "sidecar/computed/next_uses.h"
#include "sidecar/ports/sample_memory.h"

namespace optcache::sidecar {

// A value gives way to one that is used sooner, the one that is used last first. Values of which no
// use is known give way to all others, and come in only where there is room. Where all known uses
// are worth the same (Ties::kStay, see NextUses::steady), a value of known use gives way to none:
// as many uses find their value, evenly over the pass, and none is computed to replace another.
//
// What is kept and what is reserved never exceeds the capacity. Not thread-safe: belongs to the
// event loop's thread.
class ComputedValues {
 public:
  enum class Ties { kStay, kGiveWay };

  // `memory` may be shared, and may have less room than `capacity`.
  ComputedValues(SampleMemory& memory, ByteCount capacity) : memory_(memory), capacity_(capacity) {}

  // Null if there is none.
  BufferRef Find(SampleId id) const;
  // The value was read, and is used next at `next`.
  void SetNextUse(SampleId id, UseTime next);
  // All next uses, by sample.
  void SetNextUses(const std::vector<UseTime>& next);

  // The longest value that could be kept now if it is used next at `next`. An upper bound: those
  // that would give way may be too short for it.
  ByteCount RoomFor(UseTime next, Ties ties) const;
  // The memory for such a value, for which others may have given way; null: it is not to be kept.
  // To be given to Keep, or back.
  BufferRef Reserve(ByteCount length, UseTime next, Ties ties);
  void GiveBack(const BufferRef& reserved);
  void Keep(SampleId id, BufferRef reserved, UseTime next);
  void Clear();

  ByteCount capacity() const { return capacity_; }
  ByteCount bytes() const { return bytes_; }  // kept
  std::size_t values() const { return kept_.size(); }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Kept {
    BufferRef value;
    UseTime next = kNoUse;
  };
  using Use = std::pair<UseTime, SampleId>;

  static bool GivesWay(UseTime kept, UseTime to, Ties ties);
  bool CanMakeRoom(ByteCount length, UseTime next, Ties ties) const;
  void Evict();
  ByteCount taken() const { return bytes_ + reserved_; }

  SampleMemory& memory_;
  ByteCount capacity_;
  ByteCount bytes_ = 0;
  ByteCount reserved_ = 0;
  std::unordered_map<SampleId, Kept> kept_;
  std::set<Use> by_use_;
  std::uint64_t evictions_ = 0;
};

}  // namespace optcache::sidecar
