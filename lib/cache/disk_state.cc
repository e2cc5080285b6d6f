#include "cache/disk_state.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace optcache::cache {
namespace {

constexpr Duration kRestWhenFull = std::chrono::minutes(1);
constexpr int kReadErrorsInARow = 8;
// One stall of a busy machine makes all reads late that are under way.
constexpr Duration kStall = std::chrono::seconds(2);

}  // namespace

bool DiskState::Take(ByteCount bytes) {
  if (bytes > capacity_ || used_ > capacity_ - bytes) {
    ++room_wanted_;
    return false;
  }
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return true;
}

void DiskState::TakeFound(std::uint64_t number, ByteCount bytes) {
  next_number_ = std::max(next_number_, number + 1);
  used_ += bytes;
}

void DiskState::GiveBack(ByteCount bytes) {
  CHECK(bytes <= used_);
  used_ -= bytes;
}

void DiskState::OnWritten(const Status& status, ByteCount payload, ByteCount file,
                          MonotonicTime now) {
  switch (status.code()) {
    case Code::kOk:
      ++counters_.segments;
      counters_.payload_bytes += payload;
      counters_.file_bytes += file;
      return;
    case Code::kUnavailable:  // it was not the disk
      return;
    case Code::kResourceExhausted:
      ++counters_.full;
      full_until_ = now + kRestWhenFull;
      return;
    default:
      ++counters_.write_errors;
      write_failed_ = true;
  }
}

void DiskState::OnRead(const Status& status, ByteCount bytes) {
  switch (status.code()) {
    case Code::kOk:
      ++counters_.reads;
      counters_.read_bytes += bytes;
      errors_in_a_row_ = 0;
      return;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:  // it waited for a thread; the waiting side has said so
      return;
    case Code::kDataLoss:
      ++counters_.bad_samples;
      return OnReadError();
    default:
      ++counters_.read_errors;
      OnReadError();
  }
}

void DiskState::OnSlowRead(MonotonicTime now) {
  ++counters_.read_errors;
  if (now < next_stall_) return;
  next_stall_ = now + kStall;
  OnReadError();
}

void DiskState::OnReadError() {
  if (++errors_in_a_row_ >= kReadErrorsInARow) out_of_use_ = true;
}

void DiskState::OnChanged(const Status& status) {
  if (status.ok() || status.code() == Code::kUnavailable) return;
  ++counters_.write_errors;
  write_failed_ = true;
}

}  // namespace optcache::cache
