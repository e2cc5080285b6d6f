#include "cache-node/keeper.h"

#include <algorithm>
#include <utility>

namespace optcache::node {
namespace {

// Bounds on what is remembered; past them the plan's effect on those reads is lost, nothing else.
constexpr std::size_t kMaxPastReads = 4'000'000;
constexpr std::size_t kMaxAbsences = 1'000'000;

cache::KeptAfter ToKeptAfter(const ReadKey& key) {
  return {.stream = key.stream, .pass = key.pass, .position = key.position};
}

}  // namespace

// A read in a pass for which the sample was not kept comes early: from a rank that runs ahead. It
// gets a copy, and the sample waits for its own next read.
bool Keeper::ReadsAhead(const ReadKey& key, const cache::Entry& entry) const {
  return entry.kept_after.stream == key.stream && key.pass > entry.kept_after.pass + kept_for_;
}

cache::Entry* Keeper::Find(const Copy& copy) {
  return copy.guest == kNoGuest ? parts_.tier.Find(copy.id) : private_.Find(copy);
}

const cache::Entry* Keeper::Readable(SampleId id, GuestId reader) {
  const cache::Entry* for_all = parts_.tier.Find(id);
  return for_all != nullptr ? for_all : private_.Find({.id = id, .guest = reader});
}

void Keeper::AfterRead(const ReadKey& key, SampleId id, Reader reader, MonotonicTime now) {
  const Copy copy{.id = id, .guest = parts_.tier.Find(id) != nullptr ? kNoGuest : reader.guest};
  cache::Entry* entry = Find(copy);
  if (entry == nullptr) return;
  Touch(copy, *entry);
  if (retention_ == Retention::kNone) {
    Drop(copy, parts_.counters.dropped_by_plan);
    return;
  }
  if (!Planned() || key.stream == 0 || ReadsAhead(key, *entry)) return;
  const std::optional<Verdict> verdict = parts_.verdicts.Find(key);
  if (!verdict) {
    if (!reader.is_peer) Remember(key, copy);
    return;
  }
  if (verdict->beyond) return;
  if (reader.is_peer && verdict->keep && verdict->keep_at == reader.member) {
    // The reader has the bytes now and keeps them itself.
    Drop(copy, parts_.counters.dropped_by_plan);
    return;
  }
  Obey(*verdict, key, copy, *entry, now);
}

void Keeper::Obey(const Verdict& verdict, const ReadKey& key, const Copy& copy, cache::Entry& entry,
                  MonotonicTime now) {
  if (copy.guest == kNoGuest) parts_.mover.Cancel(copy.id);
  if (!Keeps(verdict, copy.guest)) {
    Drop(copy, parts_.counters.dropped_by_plan);
    return;
  }
  entry.kept_after = ToKeptAfter(key);
  if (verdict.keep_at == self_) {
    entry.residence = cache::Residence::kKept;
  } else {
    entry.residence = cache::Residence::kOutgoing;
    parts_.mover.Add(copy.id, verdict.keep_at, entry, now);
  }
}

bool Keeper::WouldKeep(const ReadKey& key, const Copy& copy, ByteCount size,
                       bool home_keeps) const {
  if (parts_.tier.Find(copy.id) != nullptr) return false;
  if (!Planned()) {
    if (copy.guest == kNoGuest) return OwnedByHome() && home_keeps;
    return IsHome(copy.id) && WouldKeepAsHome(size, copy.guest);
  }
  if (const auto verdict = parts_.verdicts.Find(key)) return Keeps(*verdict, copy.guest);
  return FitsCapacity(size, copy.guest);
}

bool Keeper::WouldKeepAsHome(ByteCount size, GuestId guest) const {
  if (!OwnedByHome() || size > parts_.tier.capacity()) return false;
  return retention_ == Retention::kLru || FitsCapacity(size, guest);
}

// In the capacity proper, once those have gone that give way to it.
bool Keeper::FitsCapacity(ByteCount size, GuestId guest) const {
  return parts_.tier.used() + size <= parts_.tier.capacity() + private_.GivesWay(guest, size);
}

bool Keeper::PlanKeepsHere(const ReadKey& key) const {
  if (!Planned()) return false;
  const std::optional<Verdict> verdict = parts_.verdicts.Find(key);
  return verdict && verdict->keep && verdict->keep_at == self_;
}

bool Keeper::MakeRoom(const Copy& copy, ByteCount size) {
  if (size > parts_.tier.capacity()) return false;
  // Only what moves on may use the transit reserve: by the plan, or to its home.
  const bool moves_on = Planned() || (copy.guest == kNoGuest && !IsHome(copy.id));
  const auto take = [&] {
    return (moves_on || parts_.tier.FitsCapacity(size)) && parts_.tier.Reserve(size);
  };
  bool taken = take();
  while (!taken && MakeWay(copy.guest, size))
    taken = take();
  return taken;
}

bool Keeper::MakeWay(GuestId guest, ByteCount size) {
  if (private_.MakeWay(guest, size)) {
    ++parts_.counters.dropped_for_room;
    return true;
  }
  return retention_ == Retention::kLru && EvictLeastRecentlyUsed(guest);
}

Status Keeper::Keep(const ReadKey& key, const Copy& copy, cache::SampleRef bytes, std::uint32_t crc,
                    MonotonicTime now) {
  const ByteCount size = bytes->size();
  if (Readable(copy.id, copy.guest) != nullptr) {
    parts_.tier.Unreserve(size);
    return OkStatus();
  }
  if (OwnedByHome()) return KeepByHome(copy, std::move(bytes), crc, now);
  const auto verdict = parts_.verdicts.Find(key);
  if (retention_ == Retention::kNone || (verdict && !Keeps(*verdict, copy.guest))) {
    parts_.tier.Unreserve(size);
    return {Code::kCancelled, "the plan does not keep this sample"};
  }
  cache::Entry& entry = Insert(copy, {.bytes = std::move(bytes), .crc = crc});
  if (verdict) {
    Obey(*verdict, key, copy, entry, now);
  } else {
    Remember(key, copy);
  }
  return OkStatus();
}

Status Keeper::KeepByHome(const Copy& copy, cache::SampleRef bytes, std::uint32_t crc,
                          MonotonicTime now) {
  const bool moves = !IsHome(copy.id);
  if (moves && copy.guest != kNoGuest) {
    parts_.tier.Unreserve(bytes->size());
    return {Code::kCancelled, "this sample is kept at another node"};
  }
  cache::Entry& entry = Insert(copy, {.bytes = std::move(bytes), .crc = crc});
  if (moves) {
    entry.residence = cache::Residence::kOutgoing;
    parts_.mover.Add(copy.id, parts_.holdings.homes().Home(copy.id), entry, now);
  }
  return OkStatus();
}

bool Keeper::IsHome(SampleId id) const {
  const cache::HomeMap& homes = parts_.holdings.homes();
  return homes.empty() || homes.Home(id) == self_;
}

Status Keeper::KeepPushed(const ReadKey& kept_after, SampleId id, cache::SampleRef bytes,
                          std::uint32_t crc) {
  const auto absence = absences_.find(id);
  const bool too_late = absence != absences_.end() && absence->second.stream == kept_after.stream &&
                        absence->second.pass > kept_after.pass;
  if (absence != absences_.end()) absences_.erase(absence);
  if (too_late || parts_.tier.Find(id) != nullptr) {
    parts_.tier.Unreserve(bytes->size());
    return OkStatus();
  }
  Insert({.id = id},
         {.bytes = std::move(bytes), .crc = crc, .kept_after = ToKeptAfter(kept_after)});
  return OkStatus();
}

void Keeper::NoteAbsent(const ReadKey& key, SampleId id) {
  if (absences_.size() < kMaxAbsences) absences_[id] = key;
}

void Keeper::Remember(const ReadKey& key, const Copy& copy) {
  cache::Entry* entry = Find(copy);
  if (key.stream == 0) return;
  // A sample that was here before keeps its place in the inventory: it lay here at the cut.
  if (entry->kept_after.stream == 0 || entry->residence == cache::Residence::kUnplanned) {
    entry->residence = cache::Residence::kUnplanned;
  }
  entry->kept_after = ToKeptAfter(key);
  if (past_reads_.size() < kMaxPastReads) past_reads_.push_back({.key = key, .copy = copy});
}

void Keeper::OnNewPlan(MonotonicTime now) {
  std::vector<PastRead> still_unknown;
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = Find(read.copy);
    if (entry == nullptr || entry->kept_after != ToKeptAfter(read.key)) continue;
    if (const auto verdict = parts_.verdicts.Find(read.key)) {
      // What lay here before the read is in the plan's base, for other reads.
      const bool stays = verdict->beyond && entry->residence != cache::Residence::kUnplanned;
      if (!stays) Obey(*verdict, read.key, read.copy, *entry, now);
    } else {
      still_unknown.push_back(read);
    }
  }
  past_reads_ = std::move(still_unknown);
}

void Keeper::OnPassReached(StreamId stream, PassNumber pass) {
  const auto is_stale = [&](const cache::Entry& entry) {
    return entry.residence == cache::Residence::kKept && entry.kept_after.stream == stream &&
           entry.kept_after.pass + kept_for_ < pass;
  };
  std::vector<SampleId> stale;
  for (const auto& [id, entry] : parts_.tier.entries()) {
    if (is_stale(entry)) stale.push_back(id);
  }
  for (const SampleId id : stale)
    Drop({.id = id}, parts_.counters.dropped_stale);
  parts_.counters.dropped_stale += private_.EraseIf(is_stale);
  std::erase_if(absences_, [&](const auto& absence) {
    return absence.second.stream == stream && absence.second.pass + 1 < pass;
  });
}

void Keeper::Evict(SampleId id, PassNumber before) {
  const auto goes = [before](const cache::Entry& entry) {
    return entry.residence == cache::Residence::kKept && entry.kept_after.pass < before;
  };
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry != nullptr && goes(*entry)) Drop({.id = id}, parts_.counters.dropped_by_plan);
  parts_.counters.dropped_by_plan += private_.EraseIf(id, goes);
}

void Keeper::TrimToCapacity() {
  while (parts_.tier.used() > parts_.tier.capacity()) {
    if (private_.MakeWay(kNoGuest, 1)) {
      ++parts_.counters.dropped_for_room;
    } else if (!EvictLeastRecentlyUsed(kNoGuest)) {
      return;
    }
  }
}

void Keeper::OnStreamEnded(StreamId stream) {
  // What waited for its plan waits no more: it lies here for whoever reads it next.
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = read.key.stream == stream ? Find(read.copy) : nullptr;
    if (entry != nullptr && entry->residence == cache::Residence::kUnplanned) {
      entry->residence = cache::Residence::kKept;
    }
  }
  std::erase_if(past_reads_, [&](const PastRead& read) { return read.key.stream == stream; });
  std::erase_if(absences_, [&](const auto& absence) { return absence.second.stream == stream; });
  // Its passes are no measure of those that any stream reads from now on, be it in its next life.
  const auto forget = [stream](cache::Entry& entry) {
    if (entry.kept_after.stream == stream) entry.kept_after = {.stream = stream};
  };
  for (const auto& [id, _] : parts_.tier.entries())
    forget(*parts_.tier.Find(id));
  private_.ForEach(forget);
}

std::size_t Keeper::GiveAway(MonotonicTime deadline, MonotonicTime now) {
  std::vector<cache::MemberId> others = parts_.holdings.homes().members();
  std::erase(others, self_);
  if (others.empty()) return 0;
  const cache::HomeMap homes(parts_.holdings.homes().dataset(), std::move(others));
  std::size_t samples = 0;
  for (const auto& [id, _] : parts_.tier.entries()) {
    cache::Entry& entry = *parts_.tier.Find(id);
    if (entry.residence == cache::Residence::kOutgoing) continue;
    entry.residence = cache::Residence::kOutgoing;
    parts_.mover.Add(id, homes.Home(id), entry, now, deadline);
    ++samples;
  }
  return samples;
}

void Keeper::OnMoved(SampleId id) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr || entry->residence != cache::Residence::kOutgoing) return;
  by_use_.erase(entry->last_use);
  parts_.tier.Erase(id);
  parts_.holdings.Lost(id);
}

void Keeper::OnMoveLost(SampleId id) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr || entry->residence != cache::Residence::kOutgoing) return;
  Drop({.id = id}, parts_.counters.dropped_in_transit);
}

void Keeper::OnMoveRefused(SampleId id) {
  if (retention_ == Retention::kPin) OnMoveLost(id);  // its home is full, and stays full
}

std::vector<SampleId> Keeper::Inventory() const {
  std::vector<SampleId> ids;
  ids.reserve(parts_.tier.samples());
  for (const auto& [id, entry] : parts_.tier.entries()) {
    if (entry.residence != cache::Residence::kUnplanned) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool Keeper::EvictLeastRecentlyUsed(GuestId guest) {
  if (guest != kNoGuest) {
    if (!private_.EraseOldest(guest)) return false;
    ++parts_.counters.dropped_for_room;
    return true;
  }
  if (by_use_.empty()) return false;
  Drop({.id = by_use_.begin()->second}, parts_.counters.dropped_for_room);
  return true;
}

void Keeper::Touch(const Copy& copy, cache::Entry& entry) {
  if (copy.guest != kNoGuest) return private_.Touch(copy);
  by_use_.erase(entry.last_use);
  entry.last_use = ++uses_;
  by_use_[entry.last_use] = copy.id;
}

void Keeper::Drop(const Copy& copy, std::uint64_t& reason) {
  ++reason;
  if (copy.guest != kNoGuest) return private_.Erase(copy);
  parts_.mover.Cancel(copy.id);
  if (const cache::Entry* entry = parts_.tier.Find(copy.id)) by_use_.erase(entry->last_use);
  parts_.tier.Erase(copy.id);
  parts_.holdings.Lost(copy.id);
}

cache::Entry& Keeper::Insert(const Copy& copy, cache::Entry entry) {
  if (copy.guest != kNoGuest) return private_.Insert(copy, std::move(entry));
  private_.EraseIf(copy.id, [](const cache::Entry&) { return true; });  // this one is for all
  parts_.holdings.Gained(copy.id);
  cache::Entry& inserted = parts_.tier.Insert(copy.id, std::move(entry));
  Touch(copy, inserted);
  return inserted;
}

}  // namespace optcache::node
