#pragma once

// All that a node does for one dataset, as a state machine: messages in, effects out. It knows no
// socket, no thread and no clock, so that the same code runs in the node, in unit tests and in a
// simulated cluster.
//
//   sidecar ── Get ──► here? ── yes ──► the bytes, and what the plan says of them
//   (RetentionManager)
//                       │ no
//                       ▼
//              Lookup at its home ──► held: fetched from the holder ─► kPeer
//                                 ├─► leased to us: a miss, the sidecar reads the store ─► Put
//                                 └─► another reads it: asked again in a moment
//
// Where there is a disk, "here" may mean there: the bytes are sent once they have been read. What
// memory has no room for goes to the disk, what is used last first (cache/tiering.h). A prefetcher
// that is to read from the store what is kept here is told so once memory has room for it: what
// could not be taken when it comes would be read from the store again in the next pass.
//
// Every wait has a deadline, after which the read is a miss: the store always answers. A sample
// whose bytes are coming from another node is not late: its reader is told that it is on its way,
// and asks again.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "cache-node/retention/counters.h"
#include "cache-node/retention/effects.h"
#include "cache-node/retention/holding_log.h"
#include "cache-node/retention/pass_counts.h"
#include "cache-node/retention/plan_decision.h"
#include "cache-node/retention/push_queue.h"
#include "cache-node/retention/retention_manager.h"
#include "cache-node/retention/use_forecast.h"
#include "cache/directory.h"
#include "cache/disk_tier.h"
#include "cache/memory_tier.h"
#include "plan/sizes.h"
#include "wire/messages.h"

namespace optcache::node {

struct DatasetConfig {
  wire::DatasetKey key = 0;
  wire::MemberId self = 0;
  Retention retention = Retention::kOptimal;
  ByteCount capacity = 0;  // payload bytes
  ByteCount disk = 0;      // of those: on disk
  ByteCount reserve = 0;   // transit, on top, in memory
  plan::Sizes sizes;       // of the samples' payloads
};

// The transit reserve: 2 % of the capacity, which covers ranks that drift apart by 4 % of an epoch
// without a loss. How far reads come in another order than planned is a matter of batches, not of
// bytes: a small cache gets room for 256 common samples, as many as a rank is staged ahead at
// least, up to 128 KiB and a quarter of the capacity.
ByteCount TransitReserve(ByteCount capacity, const plan::Sizes& sizes);

struct ReadDeadlines {
  Duration lookup = std::chrono::milliseconds(500);
  Duration peer = std::chrono::seconds(2);
  Duration disk = std::chrono::seconds(2);
  Duration urgent = std::chrono::seconds(4);  // a waiting trainer's read, all steps together
  // After that it is read where it lies: its source may have given the push up.
  Duration announced = std::chrono::milliseconds(200);
  Duration room = std::chrono::seconds(1);  // in memory, while more goes to the disk
  Duration retry = std::chrono::milliseconds(10);
};

// Who asks, or puts.
struct Asker {
  ClientId client = 0;
  wire::MemberId member = 0;          // if it is a node
  BorrowerId borrower = kNoBorrower;  // whose private entries it may have, and makes
};

// Not thread-safe: the node's event loop owns it.
class DatasetCache {
 public:
  DatasetCache(DatasetConfig config, ReadDeadlines deadlines, const PlanLookup& plan_lookup,
               Effects& effects);

  // --- from sidecars; `from` is a node for GetMode::kPeer ---
  void OnGet(const Asker& from, std::uint32_t request_id, const wire::Get& get, MonotonicTime now);
  // A buffer for a Put's or Push's payload, its bytes taken from the budget; null: not wanted.
  // Every buffer comes back through OnPut, OnPush or Abandon.
  std::shared_ptr<cache::SampleBytes> Receive(const Copy& copy, ByteCount size);
  // The same for a Push: it takes no room that sidecars were told of.
  std::shared_ptr<cache::SampleBytes> ReceivePush(SampleId id, ByteCount size);
  void Abandon(const std::shared_ptr<cache::SampleBytes>& buffer);
  // A sidecar has gone, and will not read what it has leases for: others need not wait for it.
  void OnClientGone(ClientId client, MonotonicTime now);
  // `bytes` null: they were not wanted. `received` not ok: they are not kept; kDataLoss: they are
  // wrong.
  void OnPut(const Asker& from, std::uint32_t request_id, const wire::Put& put,
             cache::SampleRef bytes, const Status& received, MonotonicTime now);
  // Forwards to the homes what a sidecar says of its leases; what it says of others' is ignored.
  void OnLeaseUpdate(ClientId from, const wire::LeaseUpdate& update, MonotonicTime now);
  // That it was given and has not ended.
  std::size_t leases(ClientId client) const;

  // --- from other nodes ---
  void OnLookup(ClientId from, wire::MemberId member, std::uint32_t request_id,
                const wire::Lookup& lookup, MonotonicTime now);
  void OnPeerLeaseUpdate(wire::MemberId member, const wire::LeaseUpdate& update, MonotonicTime now);
  void OnLookupReply(std::uint32_t request_id, const wire::LookupReply& reply, MonotonicTime now);
  // A buffer for what a peer answers; null: it was not asked for, or has another length.
  std::shared_ptr<cache::SampleBytes> ReceiveFromPeer(std::uint32_t request_id, std::uint32_t index,
                                                      ByteCount size);
  void OnPeerReply(std::uint32_t request_id, const wire::SampleReply& reply, cache::SampleRef bytes,
                   MonotonicTime now);
  void OnHolding(wire::MemberId member, const wire::Holding& holding);
  void OnAnnounce(const wire::Announce& announce, MonotonicTime now);
  void OnPush(ClientId from, std::uint32_t request_id, const wire::Push& push,
              cache::SampleRef bytes, const Status& received);
  void OnStoreReply(std::uint32_t request_id, const wire::StoreReply& reply, MonotonicTime now);
  // The connection on which `member` was asked has ended, and its answers come no more.
  void OnLinkLost(wire::MemberId member);
  // No connection with `member` is left: the leases that were granted through it end, too. If it
  // lives, some samples are read from the store twice.
  void OnPeerGone(wire::MemberId member);
  // Those of whom answers, or the ends of leases, are awaited.
  void VisitAwaited(const std::function<void(wire::MemberId)>& visit) const;

  // --- from the control side ---
  // The nodes on which the dataset is placed, which are its samples' homes; and others that hold
  // some and are about to give them away. True if this one is no longer a home, though it does not
  // end: what it holds is to go.
  bool SetMembers(const std::vector<wire::MemberId>& members,
                  const std::vector<wire::MemberId>& others = {});
  // The node is about to end: from now on its budget stays as it is, so that what is read here can
  // still go on from here, and it gives nothing away unless its retention manager is told to.
  void OnEnding() { ending_ = true; }
  // `departs`: it has a share no more, and what it holds is about to be given away.
  void SetBudget(Retention retention, ByteCount capacity, ByteCount reserve, ByteCount disk = 0,
                 bool departs = false);
  // From now on samples may lie on this disk; those that are there already are here. Once.
  void UseDisk(std::shared_ptr<cache::DiskTier> tier, cache::DiskState& disk, MonotonicTime now);
  // The dataset may have nothing on the disk any more.
  void LeaveDisk();
  bool has_disk() const { return disk_ != nullptr; }
  UseForecast& uses() { return uses_; }
  // A plan now covers more reads: carries out what it says of those already made.
  void OnNewPlan(MonotonicTime now);
  RetentionManager& retention_manager() { return retention_manager_; }
  const RetentionManager& retention_manager() const { return retention_manager_; }

  // Deadlines, retries, pushes and batches; call every few milliseconds.
  void Tick(MonotonicTime now);

  const DatasetConfig& config() const { return config_; }
  const Counters& counters() const { return counters_; }
  PassCounts& passes() { return passes_; }
  const PassCounts& passes() const { return passes_; }
  const cache::MemoryTier& tier() const { return tier_; }
  const PushQueue& push_queue() const { return push_queue_; }
  const cache::Directory& directory() const { return directory_; }
  ByteCount relay_bytes() const { return *relay_bytes_; }
  ByteCount disk_read_bytes() const { return *disk_read_bytes_; }

 private:
  // A part of the transit reserve; given back when the last copy dies.
  using RelayShare = std::shared_ptr<const void>;
  // One item of a Get that has no answer yet.
  struct Read {
    ClientId from = 0;
    BorrowerId borrower = kNoBorrower;
    std::uint32_t request_id = 0;
    std::uint32_t index = 0;
    StreamId stream = 0;
    wire::GetMode mode = wire::GetMode::kStage;
    wire::ReadItem item;
    MonotonicTime deadline{};
    MonotonicTime next_try{};   // while it waits
    RelayShare relay;           // while a peer is asked for it
    bool arriving = false;      // that peer's payload has begun
    wire::MemberId member = 0;  // the peer that reads it, with GetMode::kPeer
    ReadKey key() const { return {stream, item.pass, item.position}; }
  };
  struct Granted {  // a lease that a sidecar was given and has not ended yet
    ClientId client = 0;
    SampleId id = 0;
    ByteCount room = 0;  // in memory, for what it puts
  };
  struct Asked {  // another node's answer is awaited
    std::vector<Read> reads;
    wire::MemberId to = 0;
    MonotonicTime deadline{};
  };

  // A sample whose bytes were still coming at the deadline: its readers ask again.
  struct Late {
    SampleId id = 0;
    wire::MemberId from = 0;
    ReadKey key;
    RelayShare relay;
    MonotonicTime until{};  // unless a reader asks before
  };
  // It has come since, for all readers who were told that it would.
  struct Arrived {
    cache::SampleRef bytes;
    std::uint32_t crc = 0;
    RelayShare relay;
    MonotonicTime until{};
  };

  // A sample that is being read from the disk.
  enum class Outcome : std::uint8_t { kLocal, kPeer, kMiss };
  // A read by a rank of this node.
  struct Answered {
    ReadKey key;
    ByteCount size = 0;
    Outcome outcome = Outcome::kMiss;
  };
  struct DiskRead {
    std::vector<Read> reads;  // that wait for it
    bool to_move = false;     // the push queue waits for it
    MonotonicTime deadline{};
    bool late = false;  // counted as such
  };

  void Serve(Read read, std::map<wire::MemberId, std::vector<Read>>& lookups, MonotonicTime now);
  void ServePeer(const Asker& from, std::uint32_t request_id, const wire::Get& get,
                 MonotonicTime now);
  void AskHome(wire::MemberId home, std::vector<Read> reads, MonotonicTime now);
  void AskHomes(std::map<wire::MemberId, std::vector<Read>> lookups, MonotonicTime now);
  void OnFound(Read read, const wire::LookupItem& found, MonotonicTime now);
  wire::LookupItem LookUpHere(SampleId id, bool want_lease, wire::MemberId asker,
                              MonotonicTime now);
  void OnStaleEntry(Read read, MonotonicTime now);
  void FetchFrom(std::map<wire::MemberId, std::vector<Read>> by_holder, MonotonicTime now);
  void EndAsked(const std::function<bool(const Asked&)>& is_over, std::uint64_t& counter);
  static bool AllAnswered(const std::vector<Read>& reads);
  void SetLateApart(MonotonicTime now);
  void ForgetLate(MonotonicTime now);
  bool AnswerLate(const Read& read, MonotonicTime now);
  void OnLateReply(const Late& late, const wire::SampleReply& reply, cache::SampleRef bytes,
                   MonotonicTime now);
  void AnswerFromPeer(const Read& read, const cache::SampleRef& bytes, std::uint32_t crc);
  void AnswerOnItsWay(const Read& read);
  bool KeepFromPeer(const ReadKey& key, SampleId id, cache::SampleRef bytes, std::uint32_t crc,
                    MonotonicTime now);
  RelayShare TakeRelayShare(ByteCount size);
  void AnswerPeer(const Read& read, const cache::Entry& entry, MonotonicTime now);
  void AnswerAbsent(const Read& read);
  void AnswerAgain(Read read, std::map<wire::MemberId, std::vector<Read>>& lookups,
                   MonotonicTime now);
  DiskRead* BeginDiskRead(SampleId id, const cache::Entry& entry, MonotonicTime now);
  void ReadFromDisk(Read read, const cache::Entry& entry, MonotonicTime now);
  void OnDiskRead(SampleId id, const Result<cache::SampleRef>& result, const RelayShare& share,
                  MonotonicTime now);
  void AnswerFromDisk(DiskRead& waiting, SampleId id, const cache::SampleRef& bytes,
                      MonotonicTime now);
  void AnswerWithoutDisk(std::vector<Read> reads, MonotonicTime now);
  void GiveUpLateReads(MonotonicTime now);
  void TickDisk(MonotonicTime now);
  void Spill(MonotonicTime now);
  std::vector<SampleId> ChooseSpill() const;
  bool MaySpill(SampleId id, const cache::Entry& entry) const;
  void OnSpilled(const std::vector<std::pair<SampleId, cache::SampleRef>>& samples, bool written);
  void AnswerHere(const Read& read, MonotonicTime now);
  void AnswerMiss(const Read& read, wire::LeaseId lease, bool home_keeps);
  wire::LeaseId Grant(const Read& read, wire::LeaseId lease, bool keep);
  void GiveBack(wire::LeaseId lease);
  void ForgetGrant(std::unordered_map<wire::LeaseId, Granted>::iterator granted);
  bool AwaitsRoom(const Read& read, MonotonicTime now);
  bool HasRoomInMemory(ByteCount size) const;
  void WantRoom(ByteCount size);
  void ForgetAwaitedRoom(MonotonicTime now);
  void AnsweredFromElsewhere(const Read& read);
  bool CountCovered(const Answered& read);
  void CountRead(const Answered& read);
  void CountPredictedOfPeer(const ReadKey& key, ByteCount size);
  void GiveBackLeases(const wire::LookupReply& reply, MonotonicTime now);
  void AnswerLater(Read read, MonotonicTime now);
  bool ValidItem(const wire::ReadItem& item) const { return item.id < config_.sizes.count(); }
  ByteCount SizeOf(SampleId id) const { return config_.sizes[id]; }

  DatasetConfig config_;
  bool ending_ = false;
  std::vector<wire::MemberId> other_holders_;  // listed, and home to nothing
  ReadDeadlines deadlines_;
  const PlanLookup& plan_lookup_;
  Effects& effects_;
  Counters counters_;
  PassCounts passes_;
  std::vector<Answered> uncovered_;  // read before a plan covered them
  cache::MemoryTier tier_;
  cache::Directory directory_;
  HoldingLog holdings_;
  PushQueue push_queue_;
  RetentionManager retention_manager_;

  std::map<std::uint32_t, Asked> lookups_;
  std::map<std::uint32_t, Asked> fetches_;
  // By request and index. Few: all their bytes are in the transit reserve.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Late> late_;
  std::unordered_map<SampleId, Arrived> arrived_;
  std::map<wire::MemberId, std::vector<Read>> to_fetch_;   // collected while replies are handled
  std::vector<Read> waiting_;                              // asked again at the next tick
  std::unordered_map<SampleId, MonotonicTime> announced_;  // pushes that are coming, until when
  std::unordered_map<wire::LeaseId, Granted> granted_;
  std::unordered_map<ClientId, std::size_t> leases_;              // how many of them each has
  wire::LeaseUpdate unused_{.event = wire::LeaseEvent::kFailed};  // leases to be given back
  // Bytes that peers were asked for and that are not sent on yet; shared with those who count them
  // down, which may outlive this.
  std::shared_ptr<ByteCount> relay_bytes_ = std::make_shared<ByteCount>(0);
  MonotonicTime next_sweep_{};

  std::shared_ptr<cache::DiskTier> disk_;  // null: there is none
  cache::DiskState* disk_state_ = nullptr;
  UseForecast uses_;
  std::map<SampleId, DiskRead> disk_reads_;
  // Being read or sent on; shared with those who count them down, which may outlive this.
  std::shared_ptr<ByteCount> disk_read_bytes_ = std::make_shared<ByteCount>(0);
  std::vector<SampleId> to_spill_;  // chosen; what is used last comes last
  ByteCount spilling_bytes_ = 0;
  MonotonicTime next_spill_{};
  ByteCount granted_room_ = 0;  // of granted_, where there is a disk
  // For the largest of what lately found too little room in memory.
  ByteCount wanted_room_ = 0;
  MonotonicTime wanted_until_{};
  std::unordered_map<SampleId, MonotonicTime> await_room_;  // samples for which readers do, until
  MonotonicTime last_tick_{};
  CallbackGuard guard_;  // last
};

}  // namespace optcache::node
