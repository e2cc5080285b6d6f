#pragma once

// The outbox: kept samples on their way to the node of their next reader.
//
// A sample stays in this node's memory (and readable) until the receiver has it; a receiver without
// room is asked again until the deadline, then the sample is lost and its next read is a miss.

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cache-node/counters.h"
#include "cache-node/effects.h"
#include "cache/memory_tier.h"

namespace optcache::node {

struct MoverLimits {
  std::size_t in_flight = 16;  // pushes a receiver, unanswered
  ByteCount in_flight_bytes = 8_MiB;
  Duration first_retry = std::chrono::milliseconds(20);
  Duration deadline = std::chrono::seconds(20);
};

// Not thread-safe: the event loop owns it.
class Mover {
 public:
  Mover(wire::DatasetKey dataset, Effects& effects, Counters& counters, MoverLimits limits)
      : dataset_(dataset), effects_(effects), counters_(counters), limits_(limits) {}

  // Sends `id` to `receiver` when there is a place in flight; replaces an earlier order for it.
  // Gives up at `deadline`, by default after that of the limits.
  void Add(SampleId id, wire::MemberId receiver, const cache::Entry& entry, MonotonicTime now,
           std::optional<MonotonicTime> deadline = std::nullopt);
  void Cancel(SampleId id) { moves_.erase(id); }

  // True when the receiver has it and it may go here.
  bool OnReply(SampleId id, bool accepted, MonotonicTime now);

  // Announces and sends what is due; returns the samples whose deadline has passed.
  std::vector<SampleId> Tick(MonotonicTime now);

  std::size_t outbox_samples() const { return moves_.size(); }
  ByteCount outbox_bytes() const;

 private:
  struct Move {
    wire::MemberId receiver = 0;
    cache::SampleRef bytes;
    std::uint32_t crc = 0;
    cache::KeptAfter kept_after;
    MonotonicTime due{};
    MonotonicTime deadline{};
    Duration retry{};
    bool announced = false;
    bool in_flight = false;
    MonotonicTime sent{};
  };
  struct Load {
    std::size_t pushes = 0;
    ByteCount bytes = 0;
  };

  void Announce();
  void Send(SampleId id, Move& move, Load& load, MonotonicTime now);

  wire::DatasetKey dataset_;
  Effects& effects_;
  Counters& counters_;
  MoverLimits limits_;
  std::map<SampleId, Move> moves_;
};

}  // namespace optcache::node
