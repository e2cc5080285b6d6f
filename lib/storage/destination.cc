#include "storage/destination.h"

#include <algorithm>
#include <cstring>

namespace optcache::storage {

void Destination::Add(MutableByteSpan bytes) {
  if (bytes.empty()) return;
  parts_.push_back({.data = bytes.data(), .length = bytes.size()});
  size_ += bytes.size();
}

void Destination::Skip(ByteCount length) {
  if (length == 0) return;
  parts_.push_back({.data = nullptr, .length = length});
  size_ += length;
}

Destination Destination::After(ByteCount length) const {
  Destination rest;
  rest.stop_ = stop_;
  rest.traffic_ = traffic_;
  for (const Part& part : parts_) {
    const ByteCount gone = std::min(length, part.length);
    length -= gone;
    if (part.data == nullptr) {
      rest.Skip(part.length - gone);
    } else {
      rest.Add({part.data + gone, part.length - gone});
    }
  }
  return rest;
}

bool DestinationWriter::Write(ByteSpan piece) {
  if (piece.size() > destination_.size() - written_) return false;
  if (destination_.stop() == nullptr) {
    Copy(piece);
    return true;
  }
  WriteStop& stop = *destination_.stop();
  const MutexLock lock(stop.mutex_);  // Stop waits for the copy
  if (stop.stopped_) {
    destination_.CountArrived(piece.size());  // the store has sent it all the same
    return false;
  }
  Copy(piece);
  return true;
}

void DestinationWriter::Copy(ByteSpan piece) {
  written_ += piece.size();
  destination_.CountArrived(piece.size());
  while (!piece.empty()) {
    const Destination::Part& part = destination_.parts()[part_];
    const size_t length = std::min<size_t>(piece.size(), part.length - part_done_);
    if (part.data != nullptr) std::memcpy(part.data + part_done_, piece.data(), length);
    piece = piece.subspan(length);
    part_done_ += length;
    if (part_done_ == part.length) {
      ++part_;
      part_done_ = 0;
    }
  }
}

}  // namespace optcache::storage
