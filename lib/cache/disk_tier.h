#pragma once

// The samples of one dataset on a node's disk: which segment has them, and what becomes of segments
// whose samples go. A sample is written at most once, stays where it is however often it is read,
// and nothing is written again.
//
//   Write ──► a segment ──► its samples are here
//   Erase ──► whole blocks beside others that have gone: given back as holes
//         └─► the last one of its segment: the file is removed

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "base/callback_guard.h"
#include "base/clock.h"
#include "base/ids.h"
#include "cache/disk_state.h"
#include "cache/segment_format.h"
#include "cache/segment_io.h"

namespace optcache::cache {

// Not thread-safe: its owner's thread, on which it calls back.
class DiskTier {
 public:
  DiskTier(std::uint64_t dataset, SegmentIo& io, DiskState& disk)
      : dataset_(dataset), io_(io), disk_(disk) {}

  // A segment of the life before. What lies in several counts in the last one. Of one that could
  // not be read only the number and the room are taken.
  void Adopt(FoundSegment found);
  // All samples that are here.
  std::vector<SegmentRecord> Samples() const;

  bool Contains(SampleId id) const { return index_.contains(id); }
  std::size_t samples() const { return index_.size(); }
  ByteCount payload_bytes() const { return payload_bytes_; }

  struct NewSample {
    SegmentRecord record;
    SampleRef bytes;
  };
  using Done = std::function<void(const Status&)>;
  // Writes them as one segment, in this order, and calls `done` when they are here, or not. An
  // error at once, without `done`: kResourceExhausted: the budget has no room now; kUnavailable:
  // too much is being written, or the disk is not written to.
  Status Write(std::vector<NewSample> samples, MonotonicTime now, Done done);
  // It takes no other segment before one of those under way is written.
  bool busy() const;

  using Got = std::function<void(Result<SampleRef>)>;
  // What turns out to be lost is not here any more when `got` is called. An error at once, without
  // `got`: kNotFound: it is not here.
  Status Read(SampleId id, MonotonicTime deadline, Got got);

  // At once; the room comes back later.
  void Erase(SampleId id);
  void EraseAll();
  // Gives back blocks if there was no room somewhere. Call it now and then.
  void Tick();
  // Nothing is under way: it may be destroyed. What is destroyed earlier leaves files behind until
  // the next start.
  bool idle() const { return under_way_ == 0; }

 private:
  struct Place {
    std::uint64_t segment = 0;
    std::uint32_t record = 0;
  };
  struct Held {  // a segment
    Segment content;
    std::size_t live = 0;
    std::map<std::uint32_t, std::uint32_t> dead;  // runs of records [first, last) that are gone
    std::map<ByteCount, ByteCount> holes;         // [begin, end) given back
    ByteCount end = 0;                            // of the file, its last block included
    ByteCount taken = 0;                          // of the budget
    std::size_t reading = 0;
  };
  using Segments = std::map<std::uint64_t, Held>;

  SegmentName NameOf(std::uint64_t number) const { return {.dataset = dataset_, .number = number}; }
  void Hold(std::uint64_t number, Held held);
  void OnWritten(std::uint64_t number, Held held, const Status& status, const Done& done,
                 MonotonicTime begun);
  void OnRead(SampleId id, const Place& place, const Result<SampleRef>& result);
  void MarkDead(Segments::iterator segment, std::uint32_t record);
  static Extent BlocksOf(const Held& held, std::uint32_t first, std::uint32_t last);
  void ReturnBlocks(std::uint64_t number, Held& held, const Extent& blocks, ByteCount least);
  void RemoveIfEmpty(Segments::iterator segment);

  std::uint64_t dataset_;
  SegmentIo& io_;
  DiskState& disk_;
  Segments segments_;
  std::unordered_map<SampleId, Place> index_;
  ByteCount payload_bytes_ = 0;
  std::size_t writing_ = 0;
  std::size_t under_way_ = 0;  // calls of the disk that have not ended
  bool can_return_ = true;     // the file system takes back parts of files
  std::uint64_t room_seen_ = 0;
  CallbackGuard guard_;  // last
};

}  // namespace optcache::cache
