#pragma once

// Decides what happens to a sample once it has been read: stays, moves, or goes.
//
// Under retention Optimal the plan says so, by the read's key. While a stream's plan is not known
// yet, its samples stay with their reader, and the decisions of the plan are carried out when it
// comes. Pin and LRU keep a sample at its home node; None keeps nothing. A borrower's private entry
// obeys the same rules, but is not moved: where the sample would have to, the copy goes.
//
// What the plan gives up is *spare*: it stays, readable for all, until something else needs its
// room, the longest unused first. Jobs that read in another order than predicted, and those that
// come later, find it. Plans do not count on it: it is in no inventory, and never in the reserve.

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cache-node/retention/counters.h"
#include "cache-node/retention/holding_log.h"
#include "cache-node/retention/plan_decision.h"
#include "cache-node/retention/private_entries.h"
#include "cache-node/retention/push_queue.h"
#include "cache-node/retention/use_forecast.h"
#include "cache/memory_tier.h"
#include "cache/segment_format.h"
#include "coordination/state.h"

namespace optcache::node {

using coordination::Retention;

// Who gets the bytes of a read.
struct Reader {
  bool is_peer = false;
  wire::MemberId member = 0;  // if it is a peer: its node
  BorrowerId borrower = kNoBorrower;
};

// Not thread-safe: the event loop owns it.
class RetentionManager {
 public:
  struct Parts {
    cache::MemoryTier& tier;
    PushQueue& push_queue;
    HoldingLog& holdings;
    Counters& counters;
    const PlanLookup& plan_lookup;
    const UseForecast& uses;
  };
  RetentionManager(wire::MemberId self, Retention retention, Parts parts)
      : self_(self), retention_(retention), parts_(parts), private_(parts.tier) {}

  // What the plan kept, or was sending elsewhere, lies here from now on if no plan decides any
  // more; if it `departs`, beyond its capacity until it is given away.
  void SetRetention(Retention retention, bool departs);
  // What is kept after a read is next read in that pass or one of this many passes that follow.
  void KeepFor(PassNumber passes) { kept_for_ = passes; }

  // The copy that a reader may have: that for all, else its own. Null: there is none here.
  const cache::Entry* Readable(SampleId id, BorrowerId reader);

  // Carries out what the plan says after `reader` was handed the copy that is Readable to it.
  void AfterRead(const ReadKey& key, SampleId id, Reader reader, MonotonicTime now);

  // After a read whose bytes are not here: would some node keep the copy that the reader puts?
  bool WouldKeep(const ReadKey& key, const Copy& copy, ByteCount size, bool home_keeps) const;

  // The plan does not keep what this read takes from the store, but there is room for it.
  bool HasRoomToSpare(const ReadKey& key, const Copy& copy, ByteCount size) const;
  // Under a plan, or while there is none yet: is what this read takes from the store kept, here or
  // elsewhere? False, too, if the plan has it at some node.
  bool KeepsFromStore(const ReadKey& key, ByteCount size) const;

  // As its home: would a sample of `size` that somebody reads from the store be kept here?
  bool WouldKeepAsHome(ByteCount size, BorrowerId borrower = kNoBorrower) const;
  // Does the plan keep the sample of this read on this node?
  bool PlanKeepsHere(const ReadKey& key) const;

  // Makes room for a copy that is about to arrive, as far as the retention rule allows, and takes
  // it from the budget. No room: false.
  bool MakeRoom(const Copy& copy, ByteCount size);

  // A sample read from the store or from a peer, its bytes reserved: keeps it here, sends it on, or
  // lets it go. kResourceExhausted etc. say why it was not kept.
  Status Keep(const ReadKey& key, const Copy& copy, cache::SampleRef bytes, std::uint32_t crc,
              MonotonicTime now);
  // A sample pushed by another node, its bytes reserved.
  Status KeepPushed(const ReadKey& kept_after, SampleId id, cache::SampleRef bytes,
                    std::uint32_t crc);

  // The plan wanted `id` here for this read and it was not: a push that still comes is too late.
  void NoteAbsent(const ReadKey& key, SampleId id);

  // A plan now covers more reads: carries out its decisions for those already made.
  void OnNewPlan(MonotonicTime now);
  // All readers of `stream` on this node have reached `pass`: what waits for earlier ones goes.
  void OnPassReached(StreamId stream, PassNumber pass);
  // The plan gives `id` up: it goes, unless it was kept again after a read in pass `before` or
  // later.
  void Evict(SampleId id, PassNumber before);
  // Lets go, the longest unused first, of what its share of the budget has no room for any more;
  // of what is spare alone, or of all.
  void TrimSpares();
  void TrimToCapacity();
  // No plan decides at the moment: what is spare is kept for the next stream, whose plan may
  // count on it.
  void KeepSpares();
  // So much more is to lie on the disk: spares there give way.
  void MakeRoomOnDisk(ByteCount bytes);
  // `stream` is over.
  void OnStreamEnded(StreamId stream);
  // `borrower` may not use the dataset any more: its private entries go.
  void OnBorrowerGone(BorrowerId borrower) { private_.EraseBorrower(borrower); }

  // This node goes, or the dataset goes from it: sends what it holds to the nodes that are the
  // samples' homes without it, what is read soonest first, until `deadline`. Returns how many
  // samples that are. What lies on disk may stay for the node's next run.
  enum class OnDisk : std::uint8_t { kStays, kGoes };
  std::size_t GiveAway(OnDisk on_disk, MonotonicTime deadline, MonotonicTime now);

  // These go to other nodes in this order, as far as they are here: the plan has no room for them
  // here any more. Returns how many are.
  struct Departure {
    SampleId id = 0;
    wire::MemberId receiver = 0;
  };
  std::size_t Relocate(const std::vector<Departure>& departures, OnDisk on_disk,
                       MonotonicTime deadline, MonotonicTime now);

  // A sample that is not here yet lies on the disk.
  void Adopt(const cache::SegmentRecord& record);
  // The disk does not have it any more.
  void LoseOnDisk(SampleId id);

  void OnMoved(SampleId id);
  void OnMoveLost(SampleId id);
  // The receiver had no room; it is asked again unless it will never have any.
  void OnMoveRefused(SampleId id);

  // What lies here for the next base: all but samples that only wait for a first plan, and those on
  // a disk that stays behind.
  std::vector<SampleId> Inventory(OnDisk on_disk = OnDisk::kGoes) const;
  const PrivateEntries& private_entries() const { return private_; }
  ByteCount spare_bytes() const { return spares_in_memory_.bytes + spares_on_disk_.bytes; }
  ByteCount spare_bytes_in_memory() const { return spares_in_memory_.bytes; }

 private:
  struct PastRead {
    ReadKey key;
    Copy copy;
  };
  struct MadeRead {
    ReadKey key;
    Reader reader;
  };

  cache::Entry* Find(const Copy& copy);
  bool ReadsAhead(const ReadKey& key, const cache::Entry& entry) const;
  void NoteEarly(const Copy& copy, const MadeRead& read);
  void FollowPlan(const MadeRead& read, const Copy& copy, cache::Entry& entry, MonotonicTime now);
  MadeRead LastMade(const Copy& copy, const MadeRead& read);
  void Obey(const PlanDecision& decision, const ReadKey& key, const Copy& copy, cache::Entry& entry,
            MonotonicTime now);
  Status KeepByHome(const ReadKey& key, const Copy& copy, cache::SampleRef bytes, std::uint32_t crc,
                    MonotonicTime now);
  // The plan decides, else the home of a sample or nobody.
  bool Planned() const { return retention_ == Retention::kOptimal; }
  bool OwnedByHome() const {
    return retention_ == Retention::kPin || retention_ == Retention::kLru;
  }
  bool IsHome(SampleId id) const;
  // Does this decision keep the copy? A private one is not moved.
  bool Keeps(const PlanDecision& decision, BorrowerId borrower) const {
    return decision.keep && (borrower == kNoBorrower || decision.keep_at == self_);
  }
  bool FitsCapacity(ByteCount size, BorrowerId borrower) const;
  bool MakeWay(BorrowerId borrower, ByteCount size);
  bool EvictLeastRecentlyUsed(BorrowerId borrower);
  void Touch(const Copy& copy, cache::Entry& entry);
  void Drop(const Copy& copy, std::uint64_t& reason);
  void Erase(SampleId id);
  // It is not wanted any more: spare from now on where a plan decides, else it goes.
  void GiveUp(const Copy& copy, std::uint64_t& reason);
  bool DropSpareFor(ByteCount size);
  cache::Entry& Insert(const Copy& copy, cache::Entry entry);
  void Remember(const ReadKey& key, const Copy& copy);
  void ForgetPlan();

  struct Spares {
    std::map<std::uint64_t, SampleId> by_use;  // the longest unused first
    ByteCount bytes = 0;
  };
  Spares& SparesWith(const cache::Entry& entry) {
    return entry.on_disk ? spares_on_disk_ : spares_in_memory_;
  }
  void AddSpare(SampleId id, cache::Entry& entry);
  void GoesFirst(const Copy& copy);
  // It is wanted again, or goes.
  void TakeSpare(cache::Entry& entry);
  bool DropOldest(Spares& spares);

  wire::MemberId self_;
  Retention retention_;
  PassNumber kept_for_ = 1;
  Parts parts_;
  PrivateEntries private_;
  // Uses are numbered from the middle: what is to go first is put before all others.
  static constexpr std::uint64_t kFirstUse = std::uint64_t{1} << 63U;
  std::uint64_t uses_ = kFirstUse;
  std::uint64_t before_all_uses_ = kFirstUse;
  std::map<std::uint64_t, SampleId> by_use_;  // what is here, the longest unused first
  Spares spares_in_memory_;                   // of these
  Spares spares_on_disk_;
  std::vector<PastRead> past_reads_;                // made while no plan covered them
  std::unordered_map<SampleId, ReadKey> absences_;  // reads that did not find what was planned
  // Of copies that wait here for a read, the latest that the plan has after it and that was made
  // before it.
  std::map<Copy, MadeRead> early_reads_;
};

}  // namespace optcache::node
