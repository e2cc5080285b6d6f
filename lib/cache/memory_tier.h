#pragma once

// The samples that a node holds for one dataset, in memory and, where it has a disk, there, under
// hard budgets of payload bytes.
//
// Two numbers bound it: `capacity`, what the plan may fill, and `reserve`, what transit may use on
// top (samples that arrive early, wait to be pushed, or are being received). Nothing is ever
// admitted above their sum. Of the capacity, `disk` bytes are for samples that lie on disk alone;
// everything arrives in memory, which has the rest and the reserve. What readers still send from
// after a sample was dropped is not charged: it is bounded by their windows, and shown by
// `live_bytes()`.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

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
  kSpare,      // the plan has given it up: here until the room is needed
};

struct Entry {
  SampleRef bytes;  // null: they would have to be read from the disk
  std::uint32_t crc = 0;
  Residence residence = Residence::kKept;
  KeptAfter kept_after;
  std::uint64_t last_use = 0;  // rises with each use, for LRU
  ByteCount size = 0;          // of the sample
  bool on_disk = false;        // it is charged to the disk: bytes, if any, are there for a moment
  bool spilling = false;       // it is being written to the disk
};

// Not thread-safe: the node's event loop owns it.
class MemoryTier {
 public:
  MemoryTier(ByteCount capacity, ByteCount reserve, ByteCount disk = 0)
      : capacity_(capacity), reserve_(reserve), disk_(std::min(disk, capacity)) {}

  // May shrink below what is held: then nothing is admitted until enough has gone.
  void SetBudget(ByteCount capacity, ByteCount reserve, ByteCount disk = 0);

  // Takes `size` bytes of the budget for a sample that is about to arrive, or says no.
  // Every success is followed by Insert or by Unreserve.
  bool Reserve(ByteCount size);
  void Unreserve(ByteCount size);
  // Puts a sample whose bytes were reserved under `id`; an older one under it is replaced.
  Entry& Insert(SampleId id, Entry entry);

  // The sample lies on the disk now, and no longer in memory.
  void MoveToDisk(SampleId id);
  // A sample that the disk has, and that is not here yet. The budget may be exceeded by it.
  Entry& InsertOnDisk(SampleId id, ByteCount size, Entry entry);
  // What lay on the disk and was erased here, or replaced, since the last call.
  std::vector<SampleId> TakeErasedOnDisk();

  // Null when it is not here.
  Entry* Find(SampleId id);
  const Entry* Find(SampleId id) const;
  void Erase(SampleId id);

  // Fits within the capacity proper, leaving the reserve alone.
  bool FitsCapacity(ByteCount size) const { return used_ + size <= capacity_; }
  // There would be room for it if more of what lies in memory lay on the disk.
  bool WaitsForDisk(ByteCount size) const {
    return disk_ > 0 && used_ + size <= capacity_ + reserve_ && !FitsMemory(size, 0, 0);
  }
  // It fits in memory beside what lies there and what is awaited, once some of it gives way.
  bool FitsMemory(ByteCount size, ByteCount awaited, ByteCount gives_way) const {
    return in_memory() + awaited + size <= memory() + reserve_ + gives_way;
  }

  ByteCount used() const { return used_; }  // entries and reserved
  ByteCount peak() const { return peak_; }  // the most that was ever used
  ByteCount capacity() const { return capacity_; }
  ByteCount reserve() const { return reserve_; }
  ByteCount memory() const { return capacity_ - disk_; }  // the capacity's part
  ByteCount disk() const { return disk_; }                // the capacity's other part
  ByteCount in_memory() const { return used_ - on_disk_; }
  ByteCount on_disk() const { return on_disk_; }
  std::size_t samples_on_disk() const { return on_disk_entries_.size(); }
  std::size_t samples() const { return in_memory_entries_.size() + on_disk_entries_.size(); }
  using Entries = std::unordered_map<SampleId, Entry>;
  const Entries& in_memory_entries() const { return in_memory_entries_; }
  const Entries& on_disk_entries() const { return on_disk_entries_; }
  // visit(SampleId, Entry&) of all; it must erase and insert none.
  template <typename Visit>
  void ForEach(Visit&& visit) {
    for (Entries* entries : {&in_memory_entries_, &on_disk_entries_}) {
      for (auto& [id, entry] : *entries)
        visit(id, entry);
    }
  }

  // What the index and the allocator take beside the payload of this many, estimated: bucket, node
  // and headers.
  static ByteCount OverheadOf(std::size_t samples);

 private:
  void Release(SampleId id, const Entry& entry);

  ByteCount capacity_;
  ByteCount reserve_;
  ByteCount disk_ = 0;
  ByteCount used_ = 0;
  ByteCount peak_ = 0;
  ByteCount on_disk_ = 0;  // of `used_`
  std::vector<SampleId> erased_on_disk_;
  // Apart, so that what looks for something to write does not see the millions that are written.
  Entries in_memory_entries_;
  Entries on_disk_entries_;  // by Entry::on_disk
};

}  // namespace optcache::cache
