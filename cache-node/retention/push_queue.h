#pragma once

// Kept samples on their way to the node of their next reader.
//
// A sample stays here (and readable) until the receiver has it; a receiver without room is asked
// again until the deadline, then the sample is lost and its next read is a miss. What lies on the
// disk is read when its turn has come.

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cache-node/retention/counters.h"
#include "cache-node/retention/effects.h"
#include "cache-node/retention/pass_counts.h"
#include "cache/memory_tier.h"

namespace optcache::node {

struct PushLimits {
  std::size_t in_flight = 16;  // pushes a receiver, unanswered
  ByteCount in_flight_bytes = 8_MiB;
  Duration first_retry = std::chrono::milliseconds(20);
  Duration deadline = std::chrono::seconds(20);
};

// Not thread-safe: the event loop owns it.
class PushQueue {
 public:
  PushQueue(wire::DatasetKey dataset, Effects& effects, Counters& counters, PassCounts& passes,
            PushLimits limits)
      : dataset_(dataset),
        effects_(effects),
        counters_(counters),
        passes_(passes),
        limits_(limits) {}

  struct Order {
    SampleId id = 0;
    wire::MemberId receiver = 0;
    ReadKey after = {};                                    // the read that it follows
    std::optional<MonotonicTime> deadline = std::nullopt;  // by default that of the limits
    std::uint64_t turn = 0;  // of what waits, the lowest goes first; those of one turn by id
    bool relocates = false;  // follows no read: its node goes, or has no room for it any more
  };
  // Sends it when there is a place in flight; replaces an earlier order for that sample. Gives up
  // at the deadline.
  void Add(const Order& order, const cache::Entry& entry, MonotonicTime now);
  void Cancel(SampleId id);
  // By which the bytes of a sample on disk are asked for; they come by Provide. False: not now.
  void LoadBy(std::function<bool(SampleId)> load) { load_ = std::move(load); }
  // Bytes that were asked for; null: they are not to be had now.
  void Provide(SampleId id, cache::SampleRef bytes, MonotonicTime now);
  // True: it has its bytes in memory and is not being sent, so they may go to the disk meanwhile.
  bool WaitsInMemory(SampleId id) const;
  // They lie there now, and are read again when its turn has come.
  void LiesOnDisk(SampleId id);
  // Gives up what is not being sent at this moment; returns those samples.
  std::vector<SampleId> CancelWaiting();

  // Whether that is the answer to its order, and not to one that was cancelled or replaced.
  bool Awaits(SampleId id, std::uint32_t request_id) const;
  // What it awaits has come. True when the receiver has it and it may go here.
  bool OnReply(SampleId id, bool accepted, MonotonicTime now);

  // Announces and sends what is due; returns the samples whose deadline has passed.
  std::vector<SampleId> Tick(MonotonicTime now);

  std::size_t samples() const { return moves_.size(); }
  ByteCount bytes() const { return bytes_; }

 private:
  enum class Place : std::uint8_t {
    kWaiting,   // for its turn
    kLater,     // until `due`
    kLoading,   // from the disk
    kInFlight,  // sent, not answered
  };
  struct Move {
    wire::MemberId receiver = 0;
    std::uint32_t request_id = 0;  // of each of its pushes
    cache::SampleRef bytes;        // null: to be read from the disk
    ByteCount size = 0;
    std::uint32_t crc = 0;
    cache::KeptAfter kept_after;
    ReadKey after;
    Place place = Place::kWaiting;
    MonotonicTime due{};
    MonotonicTime deadline{};
    Duration retry{};
    bool announced = false;
    bool on_disk = false;
    bool relocates = false;
    std::uint64_t turn = 0;
    MonotonicTime sent{};
  };
  // A tick must not look at all that waits: a node that goes has a million samples here.
  struct Receiver {
    std::set<std::pair<std::uint64_t, SampleId>> waiting;  // by turn
    std::deque<SampleId> unannounced;  // some have gone since, or been announced
    std::size_t pushes = 0;            // loading or in flight,
    ByteCount bytes = 0;               // and their bytes
  };
  // Of what may have gone since, or been put off.
  using Reminder = std::pair<MonotonicTime, SampleId>;

  void Enter(SampleId id, Move& move, Place place);
  void Leave(SampleId id, const Move& move);
  void PutOff(SampleId id, Move& move, MonotonicTime due);
  std::vector<SampleId> GiveUpLate(MonotonicTime now);
  void SendAgain(MonotonicTime now);
  void Announce(wire::MemberId member, Receiver& receiver);
  bool HasRoom(const Receiver& receiver, ByteCount size) const;
  bool Send(SampleId id, Move& move, MonotonicTime now);

  wire::DatasetKey dataset_;
  Effects& effects_;
  Counters& counters_;
  PassCounts& passes_;
  PushLimits limits_;
  std::function<bool(SampleId)> load_;
  std::unordered_map<SampleId, Move> moves_;
  ByteCount bytes_ = 0;  // of all of them
  std::map<wire::MemberId, Receiver> receivers_;
  std::set<Reminder> later_;   // by `due`
  std::deque<Reminder> sent_;  // by `sent`
  std::priority_queue<Reminder, std::vector<Reminder>, std::greater<>> deadlines_;
};

}  // namespace optcache::node
