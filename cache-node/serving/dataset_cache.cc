// Answers reads, takes puts and pushes, and keeps the directory of the samples whose home is this
// node.
//
// A read moves through the steps below. It is in one place at a time and is answered once. A step
// that waits for another node has a deadline; Tick looks for those that have passed.
//
//   OnGet ─► Serve ─┬─ here ─────────────────────────────────────► AnswerHere ─►
//   RetentionManager::AfterRead
//                   ├─ announced, or awaits room ─► waiting_ ◄─┐
//                   └─► AskHomes ─► lookups_ ─► OnFound ─┬─────┘ another node reads it
//                                                        ├─ held ─► FetchFrom ─► fetches_
//                                                        └─ leased, or unknown ─► AnswerMiss
//
// Only the reads of a waiting trainer, and those of other nodes, wait in waiting_. A prefetcher is
// told to ask again. dataset_cache_peers.cc has the reads at other nodes, dataset_cache_leases.cc
// the leases, and dataset_cache_disk.cc the disk.

#include "cache-node/serving/dataset_cache.h"

#include <algorithm>
#include <utility>

namespace optcache::node {
namespace {

using wire::Answer;
using wire::Found;
using wire::GetMode;

constexpr std::uint32_t kAskAgainMs = 10;
constexpr std::size_t kMaxWaiting = 65'536;  // beyond it a read is a miss at once

constexpr ByteCount kReserveShare = 50;  // of the capacity
constexpr ByteCount kReserveSamples = 256;
constexpr ByteCount kSmallReserve = 128_KiB;
constexpr ByteCount kSmallReserveShare = 4;

// The first `most` of `items`, which keeps the others.
template <typename T>
std::vector<T> TakeUpTo(std::size_t most, std::vector<T>& items) {
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(most, items.size()));
  std::vector<T> taken(std::make_move_iterator(items.begin()), std::make_move_iterator(end));
  items.erase(items.begin(), end);
  return taken;
}

// Lease numbers of different members do not meet: the member stands in the upper half.
cache::LeaseId FirstLease(wire::MemberId self) {
  return (cache::LeaseId{self} << 32U) + 1;
}

bool Among(const std::vector<wire::MemberId>& some, wire::MemberId member) {
  return std::ranges::find(some, member) != some.end();
}

}  // namespace

ByteCount TransitReserve(ByteCount capacity, const plan::Sizes& sizes) {
  const ByteCount common = sizes.count() == 0 ? 0 : sizes.total() / sizes.count();
  const ByteCount least =
      std::min({kReserveSamples * common, kSmallReserve, capacity / kSmallReserveShare});
  return std::max(capacity / kReserveShare, least);
}

DatasetCache::DatasetCache(DatasetConfig config, ReadDeadlines deadlines,
                           const PlanLookup& plan_lookup, Effects& effects)
    : config_(std::move(config)),
      deadlines_(deadlines),
      plan_lookup_(plan_lookup),
      effects_(effects),
      tier_(config_.capacity, config_.reserve, config_.disk),
      directory_(std::chrono::seconds(wire::kLeaseSeconds), FirstLease(config_.self)),
      holdings_(config_.key, config_.self, directory_, effects),
      push_queue_(config_.key, effects, counters_, passes_, {}),
      retention_manager_(config_.self, config_.retention,
                         {.tier = tier_,
                          .push_queue = push_queue_,
                          .holdings = holdings_,
                          .counters = counters_,
                          .plan_lookup = plan_lookup,
                          .uses = uses_}) {}

void DatasetCache::OnGet(const Asker& from, std::uint32_t request_id, const wire::Get& get,
                         MonotonicTime now) {
  if (get.mode == GetMode::kPeer) return ServePeer(from, request_id, get, now);
  std::map<wire::MemberId, std::vector<Read>> lookups;
  for (std::uint32_t i = 0; i < get.items.size(); ++i) {
    Read read{.from = from.client,
              .borrower = from.borrower,
              .request_id = request_id,
              .index = i,
              .stream = get.stream,
              .mode = get.mode,
              .item = get.items[i],
              .deadline = now + deadlines_.urgent};
    uses_.OnRead(get.stream, read.item.pass, read.item.position);
    if (ValidItem(read.item)) {
      Serve(std::move(read), lookups, now);
    } else {
      effects_.Reply(from.client, request_id,
                     wire::SampleReply{.index = i, .answer = Answer::kMissDrop}, nullptr);
    }
  }
  AskHomes(std::move(lookups), now);
}

void DatasetCache::Serve(Read read, std::map<wire::MemberId, std::vector<Read>>& lookups,
                         MonotonicTime now) {
  const SampleId id = read.item.id;
  if (retention_manager_.Readable(id, read.borrower) != nullptr) return AnswerHere(read, now);
  if (AnswerLate(read, now)) return;
  const auto announced = announced_.find(id);
  if (announced != announced_.end() && now < announced->second) {
    return AnswerLater(std::move(read), now);
  }
  if (AwaitsRoom(read, now)) return AnswerLater(std::move(read), now);
  if (holdings_.homes().empty()) return AnswerMiss(read, 0, false);
  lookups[holdings_.homes().Home(id)].push_back(std::move(read));
}

void DatasetCache::AnswerHere(const Read& read, MonotonicTime now) {
  const cache::Entry& entry = *retention_manager_.Readable(read.item.id, read.borrower);
  if (!entry.bytes) return ReadFromDisk(read, entry, now);
  ++counters_.hits_local;
  counters_.hit_bytes_local += entry.size;
  counters_.hits_disk += entry.on_disk ? 1U : 0U;
  counters_.hit_bytes_disk += entry.on_disk ? entry.size : 0U;
  passes_.OnHit(read.key());
  CountRead({.key = read.key(), .size = entry.size, .outcome = Outcome::kLocal});
  effects_.Reply(read.from, read.request_id,
                 wire::SampleReply{.index = read.index, .answer = Answer::kHere, .crc = entry.crc},
                 entry.bytes);
  retention_manager_.AfterRead(read.key(), read.item.id, {.borrower = read.borrower}, now);
}

void DatasetCache::AnswerMiss(const Read& read, wire::LeaseId lease, bool home_keeps) {
  const ByteCount size = SizeOf(read.item.id);
  AnsweredFromElsewhere(read);
  ++counters_.misses;
  counters_.miss_bytes += size;
  passes_.OnMiss(read.key(), size);
  CountRead({.key = read.key(), .size = size, .outcome = Outcome::kMiss});
  const Copy copy{.id = read.item.id, .borrower = read.borrower};
  const bool keep =
      retention_manager_.WouldKeep(read.key(), copy, size, home_keeps) ||
      (HasRoomInMemory(size) && retention_manager_.HasRoomToSpare(read.key(), copy, size));
  lease = Grant(read, lease, keep);
  const bool told =
      effects_.Reply(read.from, read.request_id,
                     wire::SampleReply{.index = read.index,
                                       .answer = keep ? Answer::kMissKeep : Answer::kMissDrop,
                                       .lease = lease},
                     nullptr);
  if (!told) GiveBack(lease);
}

void DatasetCache::AnsweredFromElsewhere(const Read& read) {
  if (const auto decision = plan_lookup_.Find(read.key()); decision && decision->here) {
    retention_manager_.NoteAbsent(read.key(), read.item.id);
  }
}

// A prefetcher asks again by itself; for a trainer that waits the node asks again until its
// deadline.
void DatasetCache::AnswerLater(Read read, MonotonicTime now) {
  read.relay.reset();
  if (read.mode == GetMode::kStage) {
    AnswerOnItsWay(read);
  } else if (now >= read.deadline || waiting_.size() >= kMaxWaiting) {
    if (read.mode == GetMode::kPeer) return AnswerAbsent(read);
    AnswerMiss(read, 0, false);
  } else {
    read.next_try = now + deadlines_.retry;
    waiting_.push_back(std::move(read));
  }
}

void DatasetCache::AnswerOnItsWay(const Read& read) {
  ++counters_.on_its_way;
  effects_.Reply(
      read.from, read.request_id,
      wire::SampleReply{.index = read.index, .answer = Answer::kOnItsWay, .wait_ms = kAskAgainMs},
      nullptr);
}

void DatasetCache::AskHomes(std::map<wire::MemberId, std::vector<Read>> lookups,
                            MonotonicTime now) {
  for (auto& [home, reads] : lookups) {
    if (home == config_.self) {
      for (Read& read : reads) {
        const wire::LookupItem found = LookUpHere(read.item.id, true, config_.self, now);
        OnFound(std::move(read), found, now);
      }
      continue;
    }
    while (!reads.empty())
      AskHome(home, TakeUpTo(wire::kMaxItems, reads), now);
  }
  FetchFrom(std::exchange(to_fetch_, {}), now);
}

void DatasetCache::AskHome(wire::MemberId home, std::vector<Read> reads, MonotonicTime now) {
  const std::uint32_t request_id = effects_.NewRequestId();
  wire::Lookup lookup{.dataset = config_.key};
  for (const Read& read : reads)
    lookup.ids.push_back(read.item.id);
  if (effects_.Send(home, request_id, lookup, nullptr)) {
    lookups_[request_id] = {
        .reads = std::move(reads), .to = home, .deadline = now + deadlines_.lookup};
  } else {
    for (const Read& read : reads)
      AnswerMiss(read, 0, false);
  }
}

wire::LookupItem DatasetCache::LookUpHere(SampleId id, bool want_lease, wire::MemberId asker,
                                          MonotonicTime now) {
  if (tier_.Find(id) != nullptr) {
    return {.id = id, .found = Found::kHeld, .holder = config_.self};
  }
  using Kind = cache::DirectoryAnswer::Kind;
  const cache::DirectoryAnswer answer = directory_.Ask(id, want_lease, asker, now);
  wire::LookupItem item{.id = id, .holder = answer.holder, .lease = answer.lease};
  item.found = answer.kind == Kind::kHeld      ? Found::kHeld
               : answer.kind == Kind::kLeased  ? Found::kLeased
               : answer.kind == Kind::kWaiting ? Found::kWaiting
                                               : Found::kNobody;
  item.keep = retention_manager_.WouldKeepAsHome(SizeOf(id));
  return item;
}

void DatasetCache::OnFound(Read read, const wire::LookupItem& found, MonotonicTime now) {
  if (retention_manager_.Readable(read.item.id, read.borrower) != nullptr) {
    return AnswerHere(read, now);  // came meanwhile
  }
  switch (found.found) {
    case Found::kHeld:
      if (found.holder == config_.self) return OnStaleEntry(std::move(read), now);
      read.relay = TakeRelayShare(SizeOf(read.item.id));
      if (!read.relay) return AnswerLater(std::move(read), now);
      to_fetch_[found.holder].push_back(std::move(read));
      return;
    case Found::kWaiting:
      return AnswerLater(std::move(read), now);
    case Found::kLeased:
    case Found::kNobody:
      return AnswerMiss(read, found.lease, found.keep);
  }
}

// The home believes that this node has the sample. It is told again that it has not, and asked
// again once it knows.
void DatasetCache::OnStaleEntry(Read read, MonotonicTime now) {
  holdings_.Lost(read.item.id);
  AnswerLater(std::move(read), now);
}

std::shared_ptr<cache::SampleBytes> DatasetCache::Receive(const Copy& copy, ByteCount size) {
  if (copy.id >= config_.sizes.count() || size != SizeOf(copy.id)) return nullptr;
  if (!retention_manager_.MakeRoom(copy, size)) {
    if (tier_.WaitsForDisk(size)) WantRoom(size);
    return nullptr;
  }
  if (size >= wanted_room_) wanted_room_ = 0;  // it was made
  return std::make_shared<cache::SampleBytes>(size);
}

std::shared_ptr<cache::SampleBytes> DatasetCache::ReceivePush(SampleId id, ByteCount size) {
  // Sidecars that never bring what they were told to read do not keep nodes out.
  const ByteCount granted = std::min(granted_room_, tier_.memory() / 2);
  if (tier_.disk() == 0 ||
      tier_.FitsMemory(size, granted, retention_manager_.spare_bytes_in_memory())) {
    return Receive({.id = id}, size);
  }
  if (id < config_.sizes.count() && size == SizeOf(id)) WantRoom(size);
  return nullptr;
}

void DatasetCache::Abandon(const std::shared_ptr<cache::SampleBytes>& buffer) {
  tier_.Unreserve(buffer->size());
}

void DatasetCache::OnPut(const Asker& from, std::uint32_t request_id, const wire::Put& put,
                         cache::SampleRef bytes, const Status& received, MonotonicTime now) {
  Status kept(Code::kResourceExhausted, "no room");
  if (bytes && received.ok()) {
    kept = retention_manager_.Keep({put.stream, put.item.pass, put.item.position},
                                   {.id = put.item.id, .borrower = from.borrower}, std::move(bytes),
                                   put.crc, now);
  } else if (bytes) {
    tier_.Unreserve(bytes->size());
    if (received.code() == Code::kDataLoss) ++counters_.bad_bytes;
    kept = received;
  }
  ++(kept.ok() ? counters_.puts_kept : counters_.puts_refused);
  if (put.lease != 0 && ValidItem(put.item)) {
    OnLeaseUpdate(from.client,
                  {.dataset = config_.key,
                   .event = wire::LeaseEvent::kDone,
                   .leases = {{put.item.id, put.lease}}},
                  now);
  }
  effects_.Reply(
      from.client, request_id,
      wire::StoreReply{
          .dataset = config_.key, .id = put.item.id, .accepted = kept.ok(), .reason = kept.code()},
      nullptr);
}

void DatasetCache::OnLookup(ClientId from, wire::MemberId member, std::uint32_t request_id,
                            const wire::Lookup& lookup, MonotonicTime now) {
  wire::LookupReply reply{.dataset = config_.key};
  for (const SampleId id : lookup.ids) {
    reply.items.push_back(id < config_.sizes.count()
                              ? LookUpHere(id, lookup.want_lease, member, now)
                              : wire::LookupItem{.id = id});
  }
  effects_.Reply(from, request_id, reply, nullptr);
}

void DatasetCache::OnLookupReply(std::uint32_t request_id, const wire::LookupReply& reply,
                                 MonotonicTime now) {
  const auto it = lookups_.find(request_id);
  if (it == lookups_.end()) return GiveBackLeases(reply, now);  // too late: answered as misses
  Asked asked = std::move(it->second);
  lookups_.erase(it);
  for (std::size_t i = 0; i < asked.reads.size(); ++i) {
    Read& read = asked.reads[i];
    const bool answered = i < reply.items.size() && reply.items[i].id == read.item.id;
    OnFound(std::move(read), answered ? reply.items[i] : wire::LookupItem{}, now);
  }
  FetchFrom(std::exchange(to_fetch_, {}), now);
}

void DatasetCache::OnHolding(wire::MemberId member, const wire::Holding& holding) {
  const bool can_be_asked =
      Among(holdings_.homes().members(), member) || Among(other_holders_, member);
  if (!can_be_asked) return;
  for (const SampleId id : holding.gained) {
    if (id < config_.sizes.count()) directory_.Gained(id, member);
  }
  for (const SampleId id : holding.lost)
    directory_.Lost(id, member);
}

void DatasetCache::OnAnnounce(const wire::Announce& announce, MonotonicTime now) {
  for (const SampleId id : announce.ids) {
    if (id < config_.sizes.count()) announced_[id] = now + deadlines_.announced;
  }
}

void DatasetCache::OnPush(ClientId from, std::uint32_t request_id, const wire::Push& push,
                          cache::SampleRef bytes, const Status& received) {
  Status kept(Code::kResourceExhausted, "no room");
  if (bytes && received.ok()) {
    kept = retention_manager_.KeepPushed({push.stream, push.item.pass, push.item.position},
                                         push.item.id, std::move(bytes), push.crc);
    announced_.erase(push.item.id);
  } else if (bytes) {
    tier_.Unreserve(bytes->size());
    ++counters_.bad_bytes;
    kept = received;
  }
  effects_.Reply(
      from, request_id,
      wire::StoreReply{
          .dataset = config_.key, .id = push.item.id, .accepted = kept.ok(), .reason = kept.code()},
      nullptr);
}

void DatasetCache::OnStoreReply(std::uint32_t request_id, const wire::StoreReply& reply,
                                MonotonicTime now) {
  if (!push_queue_.Awaits(reply.id, request_id)) return;
  if (push_queue_.OnReply(reply.id, reply.accepted, now)) {
    retention_manager_.OnMoved(reply.id);
  } else if (!reply.accepted) {
    retention_manager_.OnMoveRefused(reply.id);
  }
}

bool DatasetCache::SetMembers(const std::vector<wire::MemberId>& members,
                              const std::vector<wire::MemberId>& others) {
  const std::vector<wire::MemberId> homes_before = holdings_.homes().members();
  const bool leaves = Among(homes_before, config_.self) && !Among(members, config_.self);
  std::vector<wire::MemberId> before = std::exchange(other_holders_, others);
  before.insert(before.end(), homes_before.begin(), homes_before.end());
  for (const wire::MemberId member : before) {
    if (!Among(members, member) && !Among(others, member)) directory_.ForgetMember(member);
  }
  const cache::HomeMap homes(config_.key, members);
  if (members == homes_before) return false;
  holdings_.SetHomes(homes);
  directory_.KeepOnly(
      [&](SampleId id) { return !homes.empty() && homes.Home(id) == config_.self; });
  tier_.ForEach([this](SampleId id, const cache::Entry&) { holdings_.Gained(id); });
  return leaves && !ending_;
}

void DatasetCache::SetBudget(Retention retention, ByteCount capacity, ByteCount reserve,
                             ByteCount disk, bool departs) {
  config_.retention = retention;
  if (!ending_) {
    config_.capacity = capacity;
    config_.disk = disk;
    config_.reserve = reserve;
    tier_.SetBudget(capacity, reserve, disk);
  }
  if (retention != Retention::kOptimal) uncovered_ = {};
  retention_manager_.SetRetention(retention, departs);
  retention_manager_.TrimSpares();
}

void DatasetCache::Tick(MonotonicTime now) {
  SetLateApart(now);
  EndAsked([now](const Asked& asked) { return now >= asked.deadline; }, counters_.peer_timeouts);
  std::map<wire::MemberId, std::vector<Read>> lookups;
  const auto due = std::stable_partition(waiting_.begin(), waiting_.end(),
                                         [now](const Read& read) { return now < read.next_try; });
  std::vector<Read> again(std::make_move_iterator(due), std::make_move_iterator(waiting_.end()));
  waiting_.erase(due, waiting_.end());
  for (Read& read : again)
    AnswerAgain(std::move(read), lookups, now);
  AskHomes(std::move(lookups), now);
  if (!unused_.leases.empty()) {
    OnPeerLeaseUpdate(config_.self, std::exchange(unused_, {.event = wire::LeaseEvent::kFailed}),
                      now);
  }
  for (const SampleId id : push_queue_.Tick(now))
    retention_manager_.OnMoveLost(id);
  TickDisk(now);
  holdings_.Flush();
  std::erase_if(announced_, [now](const auto& push) { return now >= push.second; });
  ForgetLate(now);
  if (now >= next_sweep_) {
    directory_.Sweep(now);
    ForgetAwaitedRoom(now);
    next_sweep_ = now + std::chrono::seconds(1);
  }
}

}  // namespace optcache::node
