#pragma once

// Decides what happens to a sample once it has been read: stays, moves, or goes.
//
// Under retention Optimal the plan says so, by the read's key. While a stream's plan is not known
// yet, its samples stay with their reader, and the plan's verdicts are carried out when it comes.
// Pin and LRU keep a sample at its home node; None keeps nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cache-node/counters.h"
#include "cache-node/holding_log.h"
#include "cache-node/mover.h"
#include "cache-node/verdict.h"
#include "cache/memory_tier.h"
#include "coordination/state.h"

namespace optcache::node {

using coordination::Retention;

// Who gets the bytes of a read.
struct Reader {
  bool is_peer = false;
  wire::MemberId member = 0;  // if it is a peer: its node
};

// Not thread-safe: the event loop owns it.
class Keeper {
 public:
  struct Parts {
    cache::MemoryTier& tier;
    Mover& mover;
    HoldingLog& holdings;
    Counters& counters;
    const Verdicts& verdicts;
  };
  Keeper(wire::MemberId self, Retention retention, Parts parts)
      : self_(self), retention_(retention), parts_(parts) {}

  void SetRetention(Retention retention) { retention_ = retention; }

  // Carries out what the plan says after `reader` was handed the sample `id`, which is here.
  void AfterRead(const ReadKey& key, SampleId id, Reader reader, MonotonicTime now);

  // After a read whose bytes are not here: would some node keep it?
  bool WouldKeep(const ReadKey& key, SampleId id, ByteCount size, bool home_keeps) const;

  // As its home: would a sample of `size` that somebody reads from the store be kept here?
  bool WouldKeepAsHome(ByteCount size) const;
  // Does the plan keep the sample of this read on this node?
  bool PlanKeepsHere(const ReadKey& key) const;

  // Makes room for `id`, which is about to arrive, as far as the retention rule allows, and takes
  // it from the budget. No room: false.
  bool MakeRoom(SampleId id, ByteCount size);

  // A sample read from the store or from a peer, its bytes reserved: keeps it here, sends it on, or
  // lets it go. kResourceExhausted etc. say why it was not kept.
  Status Keep(const ReadKey& key, SampleId id, cache::SampleRef bytes, std::uint32_t crc,
              MonotonicTime now);
  // A sample pushed by another node, its bytes reserved.
  Status KeepPushed(const ReadKey& kept_after, SampleId id, cache::SampleRef bytes,
                    std::uint32_t crc);

  // The plan wanted `id` here for this read and it was not: a push that still comes is too late.
  void NoteAbsent(const ReadKey& key, SampleId id);

  // A plan now covers more reads: carries out its verdicts for those already made.
  void OnNewPlan(MonotonicTime now);
  // All readers of `stream` on this node have reached `pass`: what waits for earlier ones goes.
  void OnPassReached(StreamId stream, PassNumber pass);
  // The plan gives `id` up: it goes, unless it was kept again after a read in pass `before` or
  // later.
  void Evict(SampleId id, PassNumber before);
  // `stream` is over.
  void OnStreamEnded(StreamId stream);

  // This node goes: sends all that it holds to the nodes that are the samples' homes without it,
  // until `deadline`. Returns how many samples that are.
  std::size_t GiveAway(MonotonicTime deadline, MonotonicTime now);

  void OnMoved(SampleId id);
  void OnMoveLost(SampleId id);
  // The receiver had no room; it is asked again unless it will never have any.
  void OnMoveRefused(SampleId id);

  // What lies here for the next base: all but samples that only wait for a first plan.
  std::vector<SampleId> Inventory() const;

 private:
  struct PastRead {
    ReadKey key;
    SampleId id = 0;
  };

  void Obey(const Verdict& verdict, const ReadKey& key, SampleId id, cache::Entry& entry,
            MonotonicTime now);
  Status KeepByHome(SampleId id, cache::SampleRef bytes, std::uint32_t crc, MonotonicTime now);
  // The plan decides, else the home of a sample or nobody.
  bool Planned() const { return retention_ == Retention::kOptimal; }
  bool OwnedByHome() const {
    return retention_ == Retention::kPin || retention_ == Retention::kLru;
  }
  bool IsHome(SampleId id) const;
  bool EvictLeastRecentlyUsed();
  void Touch(SampleId id, cache::Entry& entry);
  void Drop(SampleId id, std::uint64_t& reason);
  cache::Entry& Insert(SampleId id, cache::Entry entry);
  void Remember(const ReadKey& key, SampleId id);

  wire::MemberId self_;
  Retention retention_;
  Parts parts_;
  std::uint64_t uses_ = 0;
  std::map<std::uint64_t, SampleId> by_use_;        // what is here, the longest unused first
  std::vector<PastRead> past_reads_;                // made while no plan covered them
  std::unordered_map<SampleId, ReadKey> absences_;  // reads that did not find what was planned
};

}  // namespace optcache::node
