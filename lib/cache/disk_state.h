#pragma once

// One disk as all datasets of a node share it: how much of it is taken, and whether it still works.
//
//   full    writing rests for a minute, and is tried again
//   write   an error while writing: nothing more is written until the node starts again
//   read    errors in a row: the disk is out of use, and what lies there counts as not there;
//           of all that is late at one time, one counts

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"

namespace optcache::cache {

// What a disk has done since the node started.
struct DiskCounters {
  std::uint64_t segments = 0;      // written
  ByteCount payload_bytes = 0;     // of samples in them
  ByteCount file_bytes = 0;        // of the files: with tables and padding
  std::uint64_t reads = 0;         // samples
  ByteCount read_bytes = 0;        // of samples
  ByteCount returned_bytes = 0;    // given back as holes
  std::uint64_t write_errors = 0;  // the disk failed
  std::uint64_t read_errors = 0;   // the disk failed, or did not answer in time
  std::uint64_t bad_samples = 0;   // read, and not what was written
  std::uint64_t full = 0;          // times that the disk was full before its budget was
};

// Not thread-safe: its owner's thread.
class DiskState {
 public:
  // A budget of bytes in files, never exceeded.
  explicit DiskState(ByteCount capacity) : capacity_(capacity) {}

  bool Take(ByteCount bytes);
  // A segment that was found at the start. May go beyond the budget, then nothing is written until
  // enough has gone.
  void TakeFound(std::uint64_t number, ByteCount bytes);
  // A found segment cannot be read: its room is taken for as long as this lives.
  void OnUnread(ByteCount bytes) { unread_ += bytes; }
  // What samples can have: the capacity without such segments.
  ByteCount usable() const { return capacity_ - std::min(capacity_, unread_); }
  // Of a new segment. No other has it on this disk: files may outlive what knows of them.
  std::uint64_t NextNumber() { return next_number_++; }
  void GiveBack(ByteCount bytes);
  ByteCount capacity() const { return capacity_; }
  ByteCount used() const { return used_; }
  ByteCount peak() const { return peak_; }
  // Rises each time that there was no room: holders of spare blocks give them back.
  std::uint64_t room_wanted() const { return room_wanted_; }

  bool may_write(MonotonicTime now) const { return !out_of_use_ && !write_failed_ && !rests(now); }
  // It was full before its budget was.
  bool rests(MonotonicTime now) const { return now < full_until_; }
  bool out_of_use() const { return out_of_use_; }
  // It takes no more: its room is no capacity any more.
  bool failed() const { return out_of_use_ || write_failed_; }

  void OnWritten(const Status& status, ByteCount payload, ByteCount file, MonotonicTime now);
  void OnRead(const Status& status, ByteCount bytes);
  // Somebody stopped waiting.
  void OnSlowRead(MonotonicTime now);
  void OnReturned(ByteCount bytes) { counters_.returned_bytes += bytes; }
  // Of what is given back or removed.
  void OnChanged(const Status& status);
  const DiskCounters& counters() const { return counters_; }

 private:
  void OnReadError();

  ByteCount capacity_;
  ByteCount used_ = 0;
  ByteCount unread_ = 0;
  ByteCount peak_ = 0;
  std::uint64_t room_wanted_ = 0;
  std::uint64_t next_number_ = 1;
  bool write_failed_ = false;
  bool out_of_use_ = false;
  MonotonicTime full_until_{};
  int errors_in_a_row_ = 0;
  MonotonicTime next_stall_{};  // what is late before that is late for the same reason
  DiskCounters counters_;
};

}  // namespace optcache::cache
