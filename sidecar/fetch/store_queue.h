#pragma once

// Store reads: dozens at a time, what is due first before the rest, neighbours of one object
// together.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "sidecar/fetch/read_pace.h"
#include "sidecar/fetch/store_speed.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// Bounds how many reads run at once; a read that begins takes along what waits right beside it in
// its object (joined_read.h), so nothing is delayed to be joined. A read that waits until its store
// may be asked again is *parked*: another one runs in its place, so that objects which cannot be
// read hold up no others. So is a *silent* read while others wait for its place: for three seconds
// nothing at all has come from its store, whose connections may be dead where new ones are not. At
// most as many are silent as there are places. What waits is bounded by the memory its buffers
// hold.
//
// Reads that trainers wait for begin first, in the order in which they were asked for, then the
// others in the order in which they are due. Reads of one store share what it delivers. So one
// begins beside others that are due before it only if these come in time nevertheless, and one that
// a trainer waits for is held back a second at most, by reads that trainers have waited for longer.
// A few milliseconds' worth of bytes, and as many reads as it takes to have all of the store
// (store_speed.h), are always under way. Each dataset has a store of its own. Not thread-safe:
// belongs to the event loop's thread.
class StoreQueue {
 public:
  // Staged reads begin while fewer are parked, and so do urgent ones, which trainers wait for. Both
  // are less than what a store accepts (RetryOptions::reads_max).
  static constexpr std::size_t kParkedStagedMax = 512;
  static constexpr std::size_t kParkedMax = 2048;
  static constexpr Duration kSilentAfter = std::chrono::seconds(3);

  using Ticket = std::uint64_t;
  struct Read {
    const DatasetPort* dataset = nullptr;
    SampleId id = 0;
    BufferRef into;
    StorePort::Done done;
    ReadDue due{};      // not known: in the order of Add, and holds up no others until it is urgent
    bool keep = false;  // a node takes it into its memory
  };

  StoreQueue(StorePort& store, Alarms& alarms, std::size_t concurrency)
      : store_(store), alarms_(alarms), concurrency_(concurrency) {}
  StoreQueue(const StoreQueue&) = delete;
  StoreQueue& operator=(const StoreQueue&) = delete;

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
  using Queue = std::set<std::pair<std::uint64_t, Ticket>>;  // by turn
  struct Store;
  struct Waiting {
    Read read;
    Store* store = nullptr;
    std::optional<MonotonicTime> urgent_since;
    std::uint64_t turn = 0;  // in its queue
  };
  // One read of the store, for one sample or several.
  struct Run {
    Store* store = nullptr;
    std::uint64_t number = 0;
    std::size_t left = 0;    // samples whose end is still to come
    std::size_t wanted = 0;  // those of them that are not cancelled
    bool parked = false;
    bool silent = false;  // and therefore parked
    MonotonicTime asked;  // for the last time
    StoreSpeed::Begun begun;
    ByteCount bytes = 0;
    ReadDue due;
    std::multiset<MonotonicTime> urgent_since;  // those of them that trainers wait for
  };
  using RunRef = std::shared_ptr<Run>;
  // A sample whose end is still to come.
  struct Begun {
    RunRef run;
    std::optional<MonotonicTime> urgent_since;
  };
  struct Store {
    explicit Store(std::size_t places) : speed(places) {}
    StoreSpeed speed;
    // Those that lie beside others; the ticket tells a sample from itself.
    std::map<std::pair<StorePlace, Ticket>, Ticket> by_place;
    Queue urgent;
    std::map<const ReadPace*, Queue> staged;  // null: without a pace
    std::map<std::uint64_t, RunRef> runs;     // by number, those that are not parked
    std::size_t waiting = 0;
    ByteCount arrived = 0;   // at the last look
    MonotonicTime heard{};   // when that had grown
    std::size_t silent = 0;  // runs that are parked and silent
    bool held = false;       // its next read, as others are due before
  };
  struct Next {
    Store* store = nullptr;
    Ticket ticket = 0;
    bool urgent = false;
    MonotonicTime due{};
    std::uint64_t turn = 0;
    friend bool operator<(const Next& a, const Next& b) {
      return std::tuple(!a.urgent, a.due, a.turn) < std::tuple(!b.urgent, b.due, b.turn);
    }
  };
  // What is read together.
  struct Together {
    std::vector<Ticket> tickets;
    ByteCount bytes = 0;
  };

  void StartNext();
  // Others wait for the places.
  bool IsFull() const { return running_ >= concurrency_ && !waiting_.empty(); }
  void NoteArrivals(MonotonicTime now);
  void ParkSilent(MonotonicTime now);
  void SetSilent(Run& run, bool silent);
  bool HasItsShare(const Store& store, MonotonicTime now) const;
  void NoteSpeeds(MonotonicTime now);
  void LookLater(Alarms::Id& look, Duration wait);
  void Start(Ticket first, const Together& together);
  void OnWait(const RunRef& run, bool waits);
  void SetParked(const RunRef& run, bool parked);
  void OnEnd(Run& run, Ticket ticket);
  bool Leave(Ticket ticket);
  Store& StoreOf(const DatasetPort& dataset);
  static Queue& QueueOf(const Waiting& waiting);
  void Enqueue(Ticket ticket, Waiting& waiting);
  static void Dequeue(Ticket ticket, const Waiting& waiting);
  std::optional<Next> FindNext(MonotonicTime now);
  static ByteCount UnderWay(const Store& store);
  static bool IsLittle(const Store& store, ByteCount bytes);
  bool MayBegin(const Next& next, ByteCount bytes, MonotonicTime now) const;
  Together Alone(Ticket ticket) const;
  Together WithNeighbours(Ticket ticket) const;
  Waiting Take(Ticket ticket);

  StorePort& store_;
  Alarms& alarms_;
  std::size_t concurrency_;
  std::map<const DatasetPort*, Store> stores_;
  std::unordered_map<Ticket, Waiting> waiting_;
  std::unordered_map<Ticket, Begun> begun_;
  Alarms::Id held_look_ = 0;
  Alarms::Id silence_look_ = 0;
  std::uint64_t last_turn_ = 0;
  std::uint64_t last_run_ = 0;
  Ticket last_ticket_ = 0;
  std::size_t running_ = 0;  // for a moment above concurrency_, when parked ones go on
  std::size_t parked_ = 0;
  std::size_t silent_ = 0;  // of those that are parked, of all stores
  std::uint64_t failures_ = 0;
  std::uint64_t joined_ = 0;  // reads that another one took along
};

}  // namespace optcache::sidecar
