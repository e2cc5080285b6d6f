#pragma once

// All that a node does for one dataset, as a state machine: messages in, effects out. It knows no
// socket, no thread and no clock, so that the same code runs in the node, in unit tests and in a
// simulated cluster.
//
//   sidecar ── Get ──► here? ── yes ──► the bytes, and what the plan says of them (Keeper)
//                       │ no
//                       ▼
//              Lookup at its home ──► held: fetched from the holder ─► kPeer
//                                 ├─► leased to us: a miss, the sidecar reads the store ─► Put
//                                 └─► another reads it: asked again in a moment
//
// Every wait has a deadline, after which the read is a miss: the store always answers.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "cache-node/counters.h"
#include "cache-node/effects.h"
#include "cache-node/holding_log.h"
#include "cache-node/keeper.h"
#include "cache-node/mover.h"
#include "cache-node/verdict.h"
#include "cache/directory.h"
#include "cache/memory_tier.h"
#include "plan/sizes.h"
#include "wire/messages.h"

namespace optcache::node {

struct DatasetConfig {
  wire::DatasetKey key = 0;
  wire::MemberId self = 0;
  Retention retention = Retention::kOptimal;
  ByteCount capacity = 0;  // payload bytes
  ByteCount reserve = 0;   // transit, on top
  plan::Sizes sizes;       // of the samples' payloads
};

// The transit reserve is capacity / kReserveShare: 2 %, which covers ranks that drift apart by 4 %
// of an epoch without a loss.
inline constexpr ByteCount kReserveShare = 50;

struct ReadDeadlines {
  Duration lookup = std::chrono::milliseconds(500);
  Duration peer = std::chrono::seconds(2);
  Duration urgent = std::chrono::seconds(4);  // a waiting trainer's read, all steps together
  // After that it is read where it lies: its source may have given the push up.
  Duration announced = std::chrono::milliseconds(200);
  Duration retry = std::chrono::milliseconds(10);
};

// Who asks, or puts.
struct Asker {
  ClientId client = 0;
  wire::MemberId member = 0;  // if it is a node
  GuestId guest = kNoGuest;   // whose private copies it may have, and makes
};

// Not thread-safe: the node's event loop owns it.
class DatasetCache {
 public:
  DatasetCache(DatasetConfig config, ReadDeadlines deadlines, const Verdicts& verdicts,
               Effects& effects);

  // --- from sidecars; `from` is a node for GetMode::kPeer ---
  void OnGet(const Asker& from, std::uint32_t request_id, const wire::Get& get, MonotonicTime now);
  // A buffer for a Put's or Push's payload, its bytes taken from the budget; null: not wanted.
  // Every buffer comes back through OnPut, OnPush or Abandon.
  std::shared_ptr<cache::SampleBytes> Receive(const Copy& copy, ByteCount size);
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
  void OnPeerLeaseUpdate(const wire::LeaseUpdate& update, MonotonicTime now);
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
  void OnStoreReply(const wire::StoreReply& reply, MonotonicTime now);

  // --- from the control side ---
  // The nodes on which the dataset is placed. A node that is no longer among them gives them what
  // it holds: nobody asks it any more.
  void SetMembers(const std::vector<wire::MemberId>& members, MonotonicTime now);
  void SetBudget(Retention retention, ByteCount capacity, ByteCount reserve);
  Keeper& keeper() { return keeper_; }
  const Keeper& keeper() const { return keeper_; }

  // Deadlines, retries, pushes and batches; call every few milliseconds.
  void Tick(MonotonicTime now);

  const DatasetConfig& config() const { return config_; }
  const Counters& counters() const { return counters_; }
  const cache::MemoryTier& tier() const { return tier_; }
  const Mover& mover() const { return mover_; }
  const cache::Directory& directory() const { return directory_; }
  ByteCount relay_bytes() const { return *relay_bytes_; }

 private:
  // A part of the transit reserve; given back when the last copy dies.
  using RelayShare = std::shared_ptr<const void>;
  // One item of a Get that has no answer yet.
  struct Read {
    ClientId from = 0;
    GuestId guest = kNoGuest;
    std::uint32_t request_id = 0;
    std::uint32_t index = 0;
    StreamId stream = 0;
    wire::GetMode mode = wire::GetMode::kStage;
    wire::ReadItem item;
    MonotonicTime deadline{};
    MonotonicTime next_try{};  // while it waits
    RelayShare relay;          // while a peer is asked for it
    ReadKey key() const { return {stream, item.pass, item.position}; }
  };
  struct Granted {  // a lease that a sidecar was given and has not ended yet
    ClientId client = 0;
    SampleId id = 0;
  };
  struct Asked {  // other node's answer is awaited
    std::vector<Read> reads;
    MonotonicTime deadline{};
  };

  void Serve(Read read, std::map<wire::MemberId, std::vector<Read>>& lookups, MonotonicTime now);
  void ServePeer(const Asker& from, std::uint32_t request_id, const wire::Get& get,
                 MonotonicTime now);
  void AskHome(wire::MemberId home, std::vector<Read> reads, MonotonicTime now);
  void AskHomes(std::map<wire::MemberId, std::vector<Read>> lookups, MonotonicTime now);
  void OnFound(Read read, const wire::LookupItem& found, MonotonicTime now);
  wire::LookupItem LookUpHere(SampleId id, bool want_lease, MonotonicTime now);
  void OnStaleEntry(Read read, MonotonicTime now);
  void FetchFrom(std::map<wire::MemberId, std::vector<Read>> by_holder, MonotonicTime now);
  RelayShare TakeRelayShare(ByteCount size);
  void AnswerHere(const Read& read, MonotonicTime now);
  void AnswerMiss(const Read& read, wire::LeaseId lease, bool home_keeps);
  wire::LeaseId Grant(const Read& read, wire::LeaseId lease);
  void AnsweredFromElsewhere(const Read& read);
  void GiveBackLeases(const wire::LookupReply& reply, MonotonicTime now);
  void AnswerLater(Read read, MonotonicTime now);
  bool ValidItem(const wire::ReadItem& item) const { return item.id < config_.sizes.count(); }
  ByteCount SizeOf(SampleId id) const { return config_.sizes[id]; }

  DatasetConfig config_;
  ReadDeadlines deadlines_;
  const Verdicts& verdicts_;
  Effects& effects_;
  Counters counters_;
  cache::MemoryTier tier_;
  cache::Directory directory_;
  HoldingLog holdings_;
  Mover mover_;
  Keeper keeper_;

  std::map<std::uint32_t, Asked> lookups_;
  std::map<std::uint32_t, Asked> fetches_;
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
};

}  // namespace optcache::node
