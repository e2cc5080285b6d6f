#pragma once

// The samples that a node holds in memory for one dataset, under a hard budget of payload bytes.
//
// Two numbers bound it: `capacity`, what the plan may fill, and `reserve`, what transit may use on
// top (samples that arrive early, wait to be pushed, or are being received). Nothing is ever
// admitted above their sum. What readers still send from after a sample was dropped is not charged:
// it is bounded by their windows, and shown by `live_bytes()`.

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/bytes.h"
#include "base/ids.h"

namespace optcache::cache {

// A sample's bytes, written once and then only read. Freed when the last reference goes.
class SampleBytes {
 public:
  explicit SampleBytes(ByteCount size);
  ~SampleBytes();
  SampleBytes(const SampleBytes&) = delete;
  SampleBytes& operator=(const SampleBytes&) = delete;

  ByteSpan bytes() const { return {data_.get(), size_}; }
  MutableByteSpan writable() { return {data_.get(), size_}; }
  ByteCount size() const { return size_; }

  // Bytes in all live objects of this process. Thread-safe.
  static ByteCount LiveBytes();

 private:
  ByteCount size_;
  std::unique_ptr<std::byte[]> data_;
};

// A pin: the bytes stay where they are as long as one exists.
using SampleRef = std::shared_ptr<const SampleBytes>;

// The read after which a sample was kept; stream 0 for samples without a plan (pin, LRU).
struct KeptAfter {
  StreamId stream = 0;
  PassNumber pass = 0;
  Position position = 0;
  friend bool operator==(const KeptAfter&, const KeptAfter&) = default;
};

enum class Residence : std::uint8_t {
  kKept,       // the plan (or the retention rule) keeps it here
  kUnplanned,  // here until the plan of its stream is known
  kOutgoing,   // on its way to another node; still readable here
};

struct Entry {
  SampleRef bytes;
  std::uint32_t crc = 0;
  Residence residence = Residence::kKept;
  KeptAfter kept_after;
  std::uint64_t last_use = 0;  // rises with each use, for LRU
};

// Not thread-safe: the node's event loop owns it.
class MemoryTier {
 public:
  MemoryTier(ByteCount capacity, ByteCount reserve) : capacity_(capacity), reserve_(reserve) {}

  // May shrink below what is held: then nothing is admitted until enough has gone.
  void SetBudget(ByteCount capacity, ByteCount reserve);

  // Takes `size` bytes of the budget for a sample that is about to arrive, or says no.
  // Every success is followed by Insert or by Unreserve.
  bool Reserve(ByteCount size);
  void Unreserve(ByteCount size);
  // Puts a sample whose bytes were reserved under `id`; an older one under it is replaced.
  Entry& Insert(SampleId id, Entry entry);

  // Null when it is not here.
  Entry* Find(SampleId id);
  const Entry* Find(SampleId id) const;
  void Erase(SampleId id);

  // Fits within the capacity proper, leaving the reserve alone.
  bool FitsCapacity(ByteCount size) const { return used_ + size <= capacity_; }

  ByteCount used() const { return used_; }  // entries and reserved
  ByteCount peak() const { return peak_; }  // the most that was ever used
  ByteCount capacity() const { return capacity_; }
  ByteCount reserve() const { return reserve_; }
  std::size_t samples() const { return entries_.size(); }
  const std::unordered_map<SampleId, Entry>& entries() const { return entries_; }

  // What the index and the allocator take beside the payload of so many, estimated: bucket, node
  // and headers.
  static ByteCount OverheadOf(std::size_t samples);

 private:
  ByteCount capacity_;
  ByteCount reserve_;
  ByteCount used_ = 0;
  ByteCount peak_ = 0;
  std::unordered_map<SampleId, Entry> entries_;
};

}  // namespace optcache::cache
