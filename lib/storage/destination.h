#pragma once

// Where the bytes of one read go.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"

namespace optcache::storage {

// By which the caller of a read takes its memory back before the read has ended. Thread-safe.
class WriteStop {
 public:
  // Once this has returned, nothing is written to the destination any more.
  void Stop() {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  bool stopped() const {
    const MutexLock lock(mutex_);
    return stopped_;
  }

 private:
  friend class DestinationWriter;
  mutable Mutex mutex_;
  bool stopped_ GUARDED_BY(mutex_) = false;
};

// What a store was asked for and what has come of it, with reads that have not ended. Thread-safe.
struct Traffic {
  std::atomic<std::uint64_t> requests = 0;  // retries and hedges, too
  std::atomic<ByteCount> arrived = 0;
};
// Shared by the caller of reads and the stores' threads.
using TrafficRef = std::shared_ptr<Traffic>;

// The memory that a range of an object is read into, in the order of the object's bytes: stretches
// that are kept, each somewhere else if need be, and stretches that are read and thrown away. So
// one request can fill several places. The memory belongs to the caller. A value.
class Destination {
 public:
  struct Part {
    std::byte* data = nullptr;  // null: these bytes are thrown away
    ByteCount length = 0;       // never 0
  };

  Destination() = default;
  // One place for all of the range; converts, since that is what most reads want.
  Destination(MutableByteSpan bytes) {  // NOLINT(google-explicit-constructor)
    Add(bytes);
  }

  void Add(MutableByteSpan bytes);
  void Skip(ByteCount length);

  // What is left of it after its first `length` bytes; `length` is smaller than size().
  Destination After(ByteCount length) const;

  // What fills it by a DestinationWriter, as network stores do, heeds it. Shared with the reader.
  void set_stop(std::shared_ptr<WriteStop> stop) { stop_ = std::move(stop); }

  // Where stores count requests, and what comes, piece by piece; null: nowhere.
  void set_traffic(TrafficRef traffic) { traffic_ = std::move(traffic); }
  const TrafficRef& traffic() const { return traffic_; }
  void CountRequest() const {
    if (traffic_ != nullptr) traffic_->requests.fetch_add(1, std::memory_order_relaxed);
  }
  void CountArrived(ByteCount bytes) const {
    if (traffic_ != nullptr) traffic_->arrived.fetch_add(bytes, std::memory_order_relaxed);
  }

  const std::vector<Part>& parts() const { return parts_; }
  // The length of the range, with what is thrown away.
  ByteCount size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const std::shared_ptr<WriteStop>& stop() const { return stop_; }

 private:
  std::shared_ptr<WriteStop> stop_;
  TrafficRef traffic_;
  std::vector<Part> parts_;
  ByteCount size_ = 0;
};

// Fills a destination with bytes that arrive in pieces. Not thread-safe: one owner.
class DestinationWriter {
 public:
  explicit DestinationWriter(Destination destination) : destination_(std::move(destination)) {}

  // False if the piece is longer than what is left, or writing was stopped; then nothing is
  // written.
  bool Write(ByteSpan piece);
  // How far the range is filled.
  ByteCount written() const { return written_; }

 private:
  void Copy(ByteSpan piece);

  Destination destination_;
  size_t part_ = 0;          // the one that comes next
  ByteCount part_done_ = 0;  // of it
  ByteCount written_ = 0;
};

}  // namespace optcache::storage
