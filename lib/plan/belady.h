#pragma once

// Belady's MIN with bypass for one node: of the samples it could keep, it keeps those that are used
// soonest.
//
// The node's future uses are numbered 0, 1, 2, ... in time. A sample that is kept is kept until its
// next use and is named by that use's number, so no two kept samples have the same name and the one
// to give up is simply the largest. Bypass: that may be the one that just came.
//
//   Belady node(uses, capacity);
//   for each use u of this node:   hit = node.Take(u, bytes);
//   for each sample it could keep: node.Offer(next_use, bytes, bytes_of_use);

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "plan/bitmap_tree.h"

namespace optcache::plan {

// Not thread-safe: a value with one owner. What is kept never exceeds the capacity between calls.
class Belady {
 public:
  Belady(std::uint32_t uses, ByteCount capacity) : kept_(uses), capacity_(capacity) {}

  // Its sample is kept until then; once `use` has happened: was kept until then.
  bool Keeps(std::uint32_t use) const { return kept_.Contains(use); }
  // The same of all uses, a bit each, the first in the lowest place.
  std::span<const std::uint64_t> words() const { return kept_.words(); }
  ByteCount used() const { return used_; }
  // Some sample that was offered is not kept.
  bool gave_up() const { return gave_up_; }

  // Use `use`, after all before it, happens: whether its sample, of `bytes`, had been kept until
  // now. Frees its room.
  bool Take(std::uint32_t use, ByteCount bytes) {
    const bool kept = kept_.Contains(use);
    used_ -= kept ? bytes : 0;
    return kept;
  }

  // A sample of `bytes` that is next used at `use` could be kept from now on. Gives up the samples
  // used last until the rest fits; `bytes_of_use(u)` is the size of the sample used at u.
  template <typename BytesOfUse>
  void Offer(std::uint32_t use, ByteCount bytes, const BytesOfUse& bytes_of_use) {
    if (bytes > capacity_) {
      gave_up_ = true;
      return;
    }
    kept_.Insert(use);
    used_ += bytes;
    Shrink(bytes_of_use);
  }

  // The same, but it is not kept if something else would have to be given up for it.
  void OfferIfRoom(std::uint32_t use, ByteCount bytes) {
    if (used_ + bytes > capacity_) {
      gave_up_ = true;
      return;
    }
    kept_.Insert(use);
    used_ += bytes;
  }

  // Room that others take or give back, for example samples that wait here for a reader elsewhere.
  template <typename BytesOfUse>
  void SetCapacity(ByteCount capacity, const BytesOfUse& bytes_of_use) {
    capacity_ = capacity;
    Shrink(bytes_of_use);
  }
  ByteCount capacity() const { return capacity_; }

 private:
  template <typename BytesOfUse>
  void Shrink(const BytesOfUse& bytes_of_use) {
    while (used_ > capacity_) {
      const std::uint32_t last = kept_.Max();
      kept_.Erase(last);
      used_ -= bytes_of_use(last);
      gave_up_ = true;
    }
  }

  BitmapTree kept_;  // with past uses, which are smaller than all that is kept now
  ByteCount capacity_;
  ByteCount used_ = 0;
  bool gave_up_ = false;
};

}  // namespace optcache::plan
