#pragma once

// Where samples lie: the arena, which the training processes map, and a bounded overflow in
// ordinary memory for what the arena cannot take, which is answered by copy.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"

namespace optcache::sidecar {

// A piece of the arena.
struct Slot {
  ByteCount offset = 0;
  ByteCount length = 0;
  friend bool operator==(const Slot&, const Slot&) = default;
};

// The shared arena and who uses which part of it.
class ArenaPort {
 public:
  virtual ~ArenaPort() = default;
  virtual ByteCount capacity() const = 0;
  // Nothing if no free piece is long enough.
  virtual std::optional<Slot> Allocate(ByteCount length) = 0;
  virtual void Free(Slot slot) = 0;
  virtual MutableByteSpan Bytes(Slot slot) = 0;
};

class SampleMemory;

// Who wants the room of samples that are held only for what may come.
enum class RoomFor : std::uint8_t {
  kStaged,  // a rank that has nothing staged
  kAsked,   // a request, which would wait or be refused
};

// The room for one sample. Frees itself.
class Buffer {
 public:
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  MutableByteSpan bytes() const { return bytes_; }
  // Its place in the arena; nothing if it lies in the overflow.
  const std::optional<Slot>& slot() const { return slot_; }

 private:
  friend class SampleMemory;
  enum class Pool { kArena, kAsked, kStaged };
  Buffer(SampleMemory& memory, Pool pool, ByteCount size)
      : memory_(memory), pool_(pool), size_(size) {}

  SampleMemory& memory_;
  Pool pool_;
  ByteCount size_;
  MutableByteSpan bytes_;
  std::optional<Slot> slot_;
  std::vector<std::byte> heap_;
};

// Shared by all who read or write the bytes: the sample's holder, the batches that hand it out, the
// socket or the store that fills it, the put that sends it. The room is free when the last is done.
using BufferRef = std::shared_ptr<Buffer>;

// Not thread-safe: Allocate on the event loop's thread, and the last reference to a Buffer dies
// there too. Outlives its buffers.
class SampleMemory {
 public:
  // So much may be taken by one request, alone, however small the overflow is.
  static constexpr ByteCount kAloneAlways = 64_MiB;

  // `overflow_bytes` bounds what lies outside the arena: half of it for what is asked for, half for
  // what is staged; what one request needs alone may take the staged half, too, while that is free.
  // `on_free` is called whenever room has become free.
  SampleMemory(ArenaPort& arena, ByteCount overflow_bytes, std::function<void()> on_free);

  // `give_way` ends one hold on a sample that may be asked for again, and returns false if there
  // is none to end. Null: there are no such holds.
  void SetGiveWay(std::function<bool(RoomFor)> give_way) { give_way_ = std::move(give_way); }
  // True: try again to allocate.
  bool MakeRoom(RoomFor what) { return give_way_ && give_way_(what); }

  // In the arena; null if there is no room.
  BufferRef AllocateInArena(ByteCount size);
  // In the overflow, for a sample too large to be staged in the arena; null if there is no room.
  BufferRef AllocateStaged(ByteCount size);

  // May `bytes` be taken from the overflow by one request, as a whole? One that has been admitted
  // never waits for memory. If `others_ask` is false, waiting does not help.
  bool Admits(ByteCount bytes) const;
  bool others_ask() const { return asked_in_use_ > 0; }
  // In the overflow, for an admitted request.
  BufferRef AllocateAsked(ByteCount size);

  // The most that one request may take from it, alone: if nothing is staged there, as it is now,
  // and whatever is staged.
  ByteCount AloneMax() const { return std::max(overflow_limit_, kAloneAlways); }
  ByteCount AloneNow() const { return std::max(overflow_limit_ - staged_in_use_, kAloneAlways); }
  ByteCount AloneAtAnyTime() const { return std::max(asked_limit_, kAloneAlways); }

  ByteCount overflow_capacity() const { return overflow_limit_; }
  ByteCount arena_capacity() const { return arena_.capacity(); }
  ByteCount arena_in_use() const { return arena_in_use_; }
  ByteCount overflow_in_use() const { return asked_in_use_ + staged_in_use_; }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  friend class Buffer;
  BufferRef OnHeap(Buffer::Pool pool, ByteCount size);
  void Release(Buffer& buffer);
  ByteCount& InUse(Buffer::Pool pool);

  ArenaPort& arena_;
  ByteCount overflow_limit_;
  ByteCount asked_limit_;
  ByteCount staged_limit_;
  std::function<void()> on_free_;
  std::function<bool(RoomFor)> give_way_;
  ByteCount arena_in_use_ = 0;
  ByteCount asked_in_use_ = 0;
  ByteCount staged_in_use_ = 0;
  std::uint64_t overflow_samples_ = 0;
  ByteCount overflow_bytes_ = 0;
};

}  // namespace optcache::sidecar
