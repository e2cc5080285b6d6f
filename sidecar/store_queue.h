#pragma once

// Store reads: dozens at a time, urgent ones first, neighbours of one object together.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "sidecar/ports.h"

namespace optcache::sidecar {

// Bounds how many reads run at once; a read that begins takes along what waits right beside it in
// its object (joined_read.h), so nothing is delayed to be joined. A read that waits until its store
// may be asked again is *parked*: another one runs in its place, so that objects which cannot be
// read hold up no others. What waits is bounded by the memory its buffers hold. Not thread-safe:
// belongs to the event loop's thread.
class StoreQueue {
 public:
  // Staged reads begin while fewer are parked, and so do urgent ones, which trainers wait for. Both
  // are less than what a store accepts (RetryOptions::reads_max).
  static constexpr std::size_t kParkedStagedMax = 512;
  static constexpr std::size_t kParkedMax = 2048;

  using Ticket = std::uint64_t;
  struct Read {
    const DatasetPort* dataset = nullptr;
    SampleId id = 0;
    BufferRef into;
    StorePort::Done done;
  };

  StoreQueue(StorePort& store, std::size_t concurrency)
      : store_(store), concurrency_(concurrency) {}

  // `done` is called once, unless the read is cancelled.
  Ticket Add(Read read, bool urgent);
  void MakeUrgent(Ticket ticket);
  // True if the read had not begun and never will; false if its end is still to come.
  bool Cancel(Ticket ticket);

  std::size_t running() const { return running_; }
  std::size_t parked() const { return parked_; }
  std::size_t waiting() const { return waiting_.size(); }
  const StorePort& store() const { return store_; }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  // In one order for all objects of a dataset; the ticket tells a sample from itself.
  using Beside = std::tuple<const DatasetPort*, StorePlace, Ticket>;
  using Joined = std::vector<Read>;
  // One read of the store.
  struct Run {
    std::size_t left = 0;  // samples of it whose end is still to come
    bool parked = false;
  };

  void StartNext();
  void Start(Joined reads);
  void Park(Run& run, bool waits);
  std::optional<Joined> Pop(std::deque<Ticket>& queue);
  Joined TakeNeighbours(Ticket ticket, Read read);
  Read Take(Ticket ticket);

  StorePort& store_;
  std::size_t concurrency_;
  std::unordered_map<Ticket, Read> waiting_;
  std::map<Beside, Ticket> by_place_;  // those of waiting_ that lie beside others
  std::deque<Ticket> urgent_;          // may name reads that have begun or were cancelled
  std::deque<Ticket> staged_;
  Ticket last_ticket_ = 0;
  std::size_t running_ = 0;  // for a moment above concurrency_, when parked ones go on
  std::size_t parked_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t joined_ = 0;  // reads that another one took along
};

}  // namespace optcache::sidecar
