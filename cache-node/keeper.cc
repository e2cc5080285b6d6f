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

// A sample kept after a read in pass p is next read in p or p + 1. So a read in a later pass comes
// early: from a rank that runs ahead. It gets a copy, and the sample waits for its own next read.
bool ReadsAhead(const ReadKey& key, const cache::Entry& entry) {
  return entry.kept_after.stream == key.stream && key.pass > entry.kept_after.pass + 1;
}

}  // namespace

void Keeper::AfterRead(const ReadKey& key, SampleId id, Reader reader, MonotonicTime now) {
  cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr) return;
  Touch(id, *entry);
  if (retention_ == Retention::kNone) {
    Drop(id, parts_.counters.dropped_by_plan);
    return;
  }
  if (!Planned() || key.stream == 0 || ReadsAhead(key, *entry)) return;
  const std::optional<Verdict> verdict = parts_.verdicts.Find(key);
  if (!verdict) {
    if (!reader.is_peer) Remember(key, id);
    return;
  }
  if (reader.is_peer && verdict->keep && verdict->keep_at == reader.member) {
    // The reader has the bytes now and keeps them itself.
    Drop(id, parts_.counters.dropped_by_plan);
    return;
  }
  Obey(*verdict, key, id, *entry, now);
}

void Keeper::Obey(const Verdict& verdict, const ReadKey& key, SampleId id, cache::Entry& entry,
                  MonotonicTime now) {
  parts_.mover.Cancel(id);
  if (!verdict.keep) {
    Drop(id, parts_.counters.dropped_by_plan);
    return;
  }
  entry.kept_after = ToKeptAfter(key);
  if (verdict.keep_at == self_) {
    entry.residence = cache::Residence::kKept;
  } else {
    entry.residence = cache::Residence::kOutgoing;
    parts_.mover.Add(id, verdict.keep_at, entry, now);
  }
}

bool Keeper::WouldKeep(const ReadKey& key, SampleId id, ByteCount size, bool home_keeps) const {
  if (parts_.tier.Find(id) != nullptr) return false;
  if (!Planned()) return OwnedByHome() && home_keeps;
  if (const auto verdict = parts_.verdicts.Find(key)) return verdict->keep;
  return parts_.tier.FitsCapacity(size);
}

bool Keeper::WouldKeepAsHome(ByteCount size) const {
  if (!OwnedByHome() || size > parts_.tier.capacity()) return false;
  return retention_ == Retention::kLru || parts_.tier.FitsCapacity(size);
}

bool Keeper::PlanKeepsHere(const ReadKey& key) const {
  if (!Planned()) return false;
  const std::optional<Verdict> verdict = parts_.verdicts.Find(key);
  return verdict && verdict->keep && verdict->keep_at == self_;
}

bool Keeper::MakeRoom(SampleId id, ByteCount size) {
  if (size > parts_.tier.capacity()) return false;
  // Only what moves on may use the transit reserve: by the plan, or to its home.
  const bool moves_on = Planned() || !IsHome(id);
  const auto take = [&] {
    return (moves_on || parts_.tier.FitsCapacity(size)) && parts_.tier.Reserve(size);
  };
  bool taken = take();
  while (!taken && retention_ == Retention::kLru && EvictLeastRecentlyUsed())
    taken = take();
  return taken;
}

Status Keeper::Keep(const ReadKey& key, SampleId id, cache::SampleRef bytes, std::uint32_t crc,
                    MonotonicTime now) {
  const ByteCount size = bytes->size();
  if (parts_.tier.Find(id) != nullptr) {
    parts_.tier.Unreserve(size);
    return OkStatus();
  }
  if (OwnedByHome()) return KeepByHome(id, std::move(bytes), crc, now);
  const auto verdict = parts_.verdicts.Find(key);
  if (retention_ == Retention::kNone || (verdict && !verdict->keep)) {
    parts_.tier.Unreserve(size);
    return {Code::kCancelled, "the plan does not keep this sample"};
  }
  cache::Entry& entry = Insert(id, {.bytes = std::move(bytes), .crc = crc});
  if (verdict) {
    Obey(*verdict, key, id, entry, now);
  } else {
    Remember(key, id);
  }
  return OkStatus();
}

Status Keeper::KeepByHome(SampleId id, cache::SampleRef bytes, std::uint32_t crc,
                          MonotonicTime now) {
  cache::Entry& entry = Insert(id, {.bytes = std::move(bytes), .crc = crc});
  if (!IsHome(id)) {
    entry.residence = cache::Residence::kOutgoing;
    parts_.mover.Add(id, parts_.holdings.homes().Home(id), entry, now);
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
  Insert(id, {.bytes = std::move(bytes), .crc = crc, .kept_after = ToKeptAfter(kept_after)});
  return OkStatus();
}

void Keeper::NoteAbsent(const ReadKey& key, SampleId id) {
  if (absences_.size() < kMaxAbsences) absences_[id] = key;
}

void Keeper::Remember(const ReadKey& key, SampleId id) {
  cache::Entry* entry = parts_.tier.Find(id);
  if (key.stream == 0) return;
  // A sample that was here before keeps its place in the inventory: it lay here at the cut.
  if (entry->kept_after.stream == 0 || entry->residence == cache::Residence::kUnplanned) {
    entry->residence = cache::Residence::kUnplanned;
  }
  entry->kept_after = ToKeptAfter(key);
  if (past_reads_.size() < kMaxPastReads) past_reads_.push_back({.key = key, .id = id});
}

void Keeper::OnNewPlan(MonotonicTime now) {
  std::vector<PastRead> still_unknown;
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = parts_.tier.Find(read.id);
    if (entry == nullptr || entry->kept_after != ToKeptAfter(read.key)) continue;
    if (const auto verdict = parts_.verdicts.Find(read.key)) {
      Obey(*verdict, read.key, read.id, *entry, now);
    } else {
      still_unknown.push_back(read);
    }
  }
  past_reads_ = std::move(still_unknown);
}

void Keeper::OnPassReached(StreamId stream, PassNumber pass) {
  std::vector<SampleId> stale;
  for (const auto& [id, entry] : parts_.tier.entries()) {
    if (entry.residence == cache::Residence::kKept && entry.kept_after.stream == stream &&
        entry.kept_after.pass + 1 < pass) {
      stale.push_back(id);
    }
  }
  for (const SampleId id : stale)
    Drop(id, parts_.counters.dropped_stale);
  std::erase_if(absences_, [&](const auto& absence) {
    return absence.second.stream == stream && absence.second.pass + 1 < pass;
  });
}

void Keeper::Evict(SampleId id, PassNumber before) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr || entry->residence != cache::Residence::kKept) return;
  if (entry->kept_after.pass < before) Drop(id, parts_.counters.dropped_by_plan);
}

void Keeper::OnStreamEnded(StreamId stream) {
  // What waited for its plan waits no more: it lies here for whoever reads it next.
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = read.key.stream == stream ? parts_.tier.Find(read.id) : nullptr;
    if (entry != nullptr && entry->residence == cache::Residence::kUnplanned) {
      entry->residence = cache::Residence::kKept;
    }
  }
  std::erase_if(past_reads_, [&](const PastRead& read) { return read.key.stream == stream; });
  std::erase_if(absences_, [&](const auto& absence) { return absence.second.stream == stream; });
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
  Drop(id, parts_.counters.dropped_in_transit);
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

bool Keeper::EvictLeastRecentlyUsed() {
  if (by_use_.empty()) return false;
  Drop(by_use_.begin()->second, parts_.counters.dropped_for_room);
  return true;
}

void Keeper::Touch(SampleId id, cache::Entry& entry) {
  by_use_.erase(entry.last_use);
  entry.last_use = ++uses_;
  by_use_[entry.last_use] = id;
}

void Keeper::Drop(SampleId id, std::uint64_t& reason) {
  parts_.mover.Cancel(id);
  if (const cache::Entry* entry = parts_.tier.Find(id)) by_use_.erase(entry->last_use);
  parts_.tier.Erase(id);
  parts_.holdings.Lost(id);
  ++reason;
}

cache::Entry& Keeper::Insert(SampleId id, cache::Entry entry) {
  parts_.holdings.Gained(id);
  cache::Entry& inserted = parts_.tier.Insert(id, std::move(entry));
  Touch(id, inserted);
  return inserted;
}

}  // namespace optcache::node
