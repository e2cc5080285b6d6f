#pragma once

// What the disk tier asks of a disk. Everything ends later, by a call on the owner's thread: a real
// disk (segment_files.h) has threads for it, tests have a queue and a script of faults.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/memory_tier.h"
#include "cache/segment_format.h"

namespace optcache::cache {

// A whole segment: its records and, in the same order, their bytes.
struct SegmentContent {
  SegmentName name;
  std::vector<SegmentRecord> records;
  std::vector<SampleRef> samples;
};

// One sample to be read.
struct SegmentRead {
  SegmentName name;
  Extent extent;
  std::uint32_t crc = 0;
  MonotonicTime deadline{};  // what has not begun by then does not begin
};

// Not thread-safe: called on its owner's thread, on which it calls back, never from within a call.
class SegmentIo {
 public:
  using Done = std::function<void(const Status&)>;
  using Got = std::function<void(Result<SampleRef>)>;

  virtual ~SegmentIo() = default;
  // Once it is done with ok, the bytes are the disk's. An error leaves no file behind.
  // kResourceExhausted: the disk is full; kUnavailable: too much waits to be done; else: the disk
  // failed.
  virtual void Write(SegmentContent content, Done done) = 0;
  // kDataLoss: the bytes are not those that were written; kUnavailable: too much waits;
  // kDeadlineExceeded: it did not get its turn; else: the disk failed.
  virtual void Read(SegmentRead read, Got got) = 0;
  // Gives whole blocks back; they read as zeros afterwards. kInvalidArgument: this file system
  // cannot. Neither this nor Remove is refused for what waits.
  virtual void Punch(const SegmentName& name, const Extent& extent, Done done) = 0;
  virtual void Remove(const SegmentName& name, Done done) = 0;
};

}  // namespace optcache::cache
