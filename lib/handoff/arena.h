#pragma once

// The memory through which samples are handed over, and who uses which part of it.

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::handoff {

// A piece of the arena.
struct Slot {
  ByteCount offset = 0;
  ByteCount length = 0;  // as asked for; what it occupies is rounded up
  friend bool operator==(const Slot&, const Slot&) = default;
};

inline constexpr ByteCount kSlotAlignment = 64;

// Divides [0, capacity) into slots of any length: best fit, lowest offset first among equals;
// neighbours that are free grow together. O(log n) a call. Touches no memory that it divides.
// Not thread-safe: one owner.
class ArenaAllocator {
 public:
  // Rounds `capacity` down to a multiple of kSlotAlignment.
  explicit ArenaAllocator(ByteCount capacity);

  // Nothing if no free piece is long enough. A slot of length 0 has a place of its own too.
  std::optional<Slot> Allocate(ByteCount length);
  // CHECKs that the slot was given out and not freed since.
  void Free(const Slot& slot);

  ByteCount capacity() const { return capacity_; }
  ByteCount in_use() const { return in_use_; }  // rounding included
  std::size_t slots() const { return used_.size(); }
  // The longest slot that Allocate could give now.
  ByteCount LongestFree() const;

 private:
  using Piece = std::pair<ByteCount, ByteCount>;  // length, offset

  void AddFree(ByteCount offset, ByteCount length);
  void TakeFree(ByteCount offset, ByteCount length);

  ByteCount capacity_;
  ByteCount in_use_ = 0;
  std::map<ByteCount, ByteCount> free_by_offset_;
  std::set<Piece> free_by_length_;
  std::unordered_map<ByteCount, ByteCount> used_;  // offset -> length, rounded
};

// A sealed memory file that this process alone can write, mapped for as long as the arena lives.
// Not thread-safe: slots are given and taken by one thread; the bytes of a slot belong to its
// holder.
class Arena {
 public:
  // All of `size` is taken from the machine at once, so that a lack of memory shows now.
  // kInvalidArgument: too small to hold anything. kResourceExhausted: there is not so much memory;
  // names what there is and where the limit is.
  static Result<Arena> Create(ByteCount size);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  std::optional<Slot> Allocate(ByteCount length) { return allocator_.Allocate(length); }
  void Free(const Slot& slot) { allocator_.Free(slot); }
  MutableByteSpan Bytes(const Slot& slot) { return {base_ + slot.offset, slot.length}; }

  const ArenaAllocator& allocator() const { return allocator_; }
  ByteCount size() const { return size_; }
  // For the clients; can be mapped for reading only.
  int fd() const { return fd_.get(); }

 private:
  Arena(UniqueFd fd, std::byte* base, ByteCount size);

  UniqueFd fd_;
  std::byte* base_;
  ByteCount size_;
  ArenaAllocator allocator_;
};

}  // namespace optcache::handoff
