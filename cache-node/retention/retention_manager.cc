// Carries out the retention rules. Begin at AfterRead, Keep (a put) and KeepPushed; Obey follows a
// decision. Insert, Adopt, Erase and OnMoved keep the tier, by_use_ and what homes are told in
// step, for spares, too. retention_manager_spares.cc has the spares, and samples that are
// relocated.

#include "cache-node/retention/retention_manager.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace optcache::node {
namespace {

// Bounds on what is remembered; past them the plan's effect on those reads is lost, nothing else.
constexpr std::size_t kMaxPastReads = 4'000'000;
constexpr std::size_t kMaxAbsences = 1'000'000;
constexpr std::size_t kMaxEarlyReads = 1'000'000;
// What goes by no plan goes after all that does.
constexpr std::uint64_t kTurnsByPlan = std::uint64_t{1} << 63U;

cache::KeptAfter ToKeptAfter(const ReadKey& key) {
  return {.stream = key.stream, .pass = key.pass, .position = key.position};
}

// Has a read been made that the plan has after this one? What it left behind is right already.
bool ComesLate(const ReadKey& key, const cache::Entry& entry) {
  const cache::KeptAfter& after = entry.kept_after;
  return after.stream == key.stream &&
         std::tie(key.pass, key.position) < std::tie(after.pass, after.position);
}

}  // namespace

// A read in a pass for which the sample was not kept comes early: from a rank that runs ahead. It
// gets a copy, and the sample waits for its own next read.
bool RetentionManager::ReadsAhead(const ReadKey& key, const cache::Entry& entry) const {
  return entry.kept_after.stream == key.stream && key.pass > entry.kept_after.pass + kept_for_;
}

void RetentionManager::NoteEarly(const Copy& copy, const MadeRead& read) {
  const auto noted = early_reads_.find(copy);
  if (noted == early_reads_.end()) {
    if (early_reads_.size() < kMaxEarlyReads) early_reads_.emplace(copy, read);
  } else if (noted->second.key.stream != read.key.stream ||
             noted->second.key.pass < read.key.pass) {
    noted->second = read;
  }
}

// Of this read and the one that it would keep the copy for, if that has been made: the later one,
// which says what becomes of the copy now.
RetentionManager::MadeRead RetentionManager::LastMade(const Copy& copy, const MadeRead& read) {
  const auto noted = early_reads_.find(copy);
  if (noted == early_reads_.end()) return read;
  const MadeRead early = noted->second;
  const bool is_due =
      early.key.stream == read.key.stream && early.key.pass <= read.key.pass + kept_for_;
  if (is_due) early_reads_.erase(noted);
  return is_due && early.key.pass > read.key.pass ? early : read;
}

void RetentionManager::SetRetention(Retention retention, bool departs) {
  const Retention before = std::exchange(retention_, retention);
  if (before == retention) return;
  // What is in flight goes where it was sent; the node that gets it tells its home.
  for (const SampleId id : parts_.push_queue.CancelWaiting()) {
    cache::Entry* const entry = parts_.tier.Find(id);
    if (entry != nullptr) entry->residence = cache::Residence::kKept;
  }
  if (before != Retention::kOptimal) return;
  ForgetPlan();
  if (!departs) TrimToCapacity();  // the reserve is for what moves
}

// Passes are no measure of what lies here any more.
void RetentionManager::ForgetPlan() {
  const auto forget = [](cache::Entry& entry) {
    entry.kept_after = {};
    if (entry.residence == cache::Residence::kUnplanned) entry.residence = cache::Residence::kKept;
  };
  KeepSpares();
  parts_.tier.ForEach([&](SampleId, cache::Entry& entry) { forget(entry); });
  private_.ForEach(forget);
  past_reads_.clear();
  absences_.clear();
  early_reads_.clear();
}

cache::Entry* RetentionManager::Find(const Copy& copy) {
  return copy.borrower == kNoBorrower ? parts_.tier.Find(copy.id) : private_.Find(copy);
}

const cache::Entry* RetentionManager::Readable(SampleId id, BorrowerId reader) {
  const cache::Entry* for_all = parts_.tier.Find(id);
  return for_all != nullptr ? for_all : private_.Find({.id = id, .borrower = reader});
}

void RetentionManager::AfterRead(const ReadKey& key, SampleId id, Reader reader,
                                 MonotonicTime now) {
  const Copy copy{.id = id,
                  .borrower = parts_.tier.Find(id) != nullptr ? kNoBorrower : reader.borrower};
  cache::Entry* entry = Find(copy);
  if (entry == nullptr) return;
  if (entry->residence == cache::Residence::kSpare) ++parts_.counters.hits_spare;
  Touch(copy, *entry);
  if (retention_ == Retention::kNone) {
    Drop(copy, parts_.counters.dropped_by_plan);
    return;
  }
  if (!Planned() || key.stream == 0 || ComesLate(key, *entry)) return;
  if (ReadsAhead(key, *entry)) return NoteEarly(copy, {.key = key, .reader = reader});
  FollowPlan(LastMade(copy, {.key = key, .reader = reader}), copy, *entry, now);
}

void RetentionManager::FollowPlan(const MadeRead& read, const Copy& copy, cache::Entry& entry,
                                  MonotonicTime now) {
  const std::optional<PlanDecision> decision = parts_.plan_lookup.Find(read.key);
  if (!decision) {
    if (!read.reader.is_peer) Remember(read.key, copy);
    return;
  }
  if (decision->beyond) return;
  if (read.reader.is_peer && decision->keep && decision->keep_at == read.reader.member) {
    // The reader has the bytes now and keeps them itself, if it has the room.
    GiveUp(copy, parts_.counters.dropped_by_plan);
    GoesFirst(copy);
    return;
  }
  Obey(*decision, read.key, copy, entry, now);
}

void RetentionManager::Obey(const PlanDecision& decision, const ReadKey& key, const Copy& copy,
                            cache::Entry& entry, MonotonicTime now) {
  if (copy.borrower == kNoBorrower) parts_.push_queue.Cancel(copy.id);
  if (!Keeps(decision, copy.borrower)) {
    GiveUp(copy, parts_.counters.dropped_by_plan);
    return;
  }
  if (entry.residence == cache::Residence::kSpare) parts_.holdings.Gained(copy.id);
  TakeSpare(entry);
  entry.kept_after = ToKeptAfter(key);
  if (decision.keep_at == self_) {
    entry.residence = cache::Residence::kKept;
  } else {
    entry.residence = cache::Residence::kOutgoing;
    parts_.push_queue.Add({.id = copy.id, .receiver = decision.keep_at, .after = key}, entry, now);
  }
}

bool RetentionManager::WouldKeep(const ReadKey& key, const Copy& copy, ByteCount size,
                                 bool home_keeps) const {
  if (parts_.tier.Find(copy.id) != nullptr) return false;
  if (!Planned()) {
    if (copy.borrower == kNoBorrower) return OwnedByHome() && home_keeps;
    return IsHome(copy.id) && WouldKeepAsHome(size, copy.borrower);
  }
  if (const auto decision = parts_.plan_lookup.Find(key)) return Keeps(*decision, copy.borrower);
  return FitsCapacity(size, copy.borrower);
}

bool RetentionManager::KeepsFromStore(const ReadKey& key, ByteCount size) const {
  if (!Planned()) return false;
  const auto decision = parts_.plan_lookup.Find(key);
  return decision ? decision->holder == 0 && decision->keep : FitsCapacity(size, kNoBorrower);
}

bool RetentionManager::WouldKeepAsHome(ByteCount size, BorrowerId borrower) const {
  if (!OwnedByHome() || size > parts_.tier.capacity()) return false;
  return retention_ == Retention::kLru || FitsCapacity(size, borrower);
}

// In the capacity proper, once those have gone that give way to it.
bool RetentionManager::FitsCapacity(ByteCount size, BorrowerId borrower) const {
  return parts_.tier.used() + size <=
         parts_.tier.capacity() + private_.GivesWay(borrower, size) + spare_bytes();
}

bool RetentionManager::PlanKeepsHere(const ReadKey& key) const {
  if (!Planned()) return false;
  const std::optional<PlanDecision> decision = parts_.plan_lookup.Find(key);
  return decision && decision->keep && decision->keep_at == self_;
}

bool RetentionManager::MakeRoom(const Copy& copy, ByteCount size) {
  if (size > parts_.tier.capacity()) return false;
  // Only what moves on may use the transit reserve: by the plan, or to its home.
  const bool moves_on = Planned() || (copy.borrower == kNoBorrower && !IsHome(copy.id));
  const auto take = [&] {
    return (moves_on || parts_.tier.FitsCapacity(size)) && parts_.tier.Reserve(size);
  };
  bool taken = take();
  while (!taken && MakeWay(copy.borrower, size))
    taken = take();
  if (taken) TrimSpares();
  return taken;
}

bool RetentionManager::MakeWay(BorrowerId borrower, ByteCount size) {
  if (DropSpareFor(size)) return true;
  if (private_.MakeWay(borrower, size)) {
    ++parts_.counters.dropped_for_room;
    return true;
  }
  if (parts_.tier.WaitsForDisk(size)) return false;  // what goes may lie there
  return retention_ == Retention::kLru && EvictLeastRecentlyUsed(borrower);
}

Status RetentionManager::Keep(const ReadKey& key, const Copy& copy, cache::SampleRef bytes,
                              std::uint32_t crc, MonotonicTime now) {
  const ByteCount size = bytes->size();
  const auto decision = parts_.plan_lookup.Find(key);
  if (Readable(copy.id, copy.borrower) != nullptr) {
    parts_.tier.Unreserve(size);
    cache::Entry* const here = parts_.tier.Find(copy.id);
    const bool spare = here != nullptr && here->residence == cache::Residence::kSpare;
    if (spare && decision && decision->keep) Obey(*decision, key, {.id = copy.id}, *here, now);
    return OkStatus();
  }
  if (OwnedByHome()) return KeepByHome(key, copy, std::move(bytes), crc, now);
  const bool given_up = decision && !Keeps(*decision, copy.borrower);
  const bool stays = copy.borrower == kNoBorrower && given_up && !decision->beyond;
  if (retention_ == Retention::kNone || (given_up && !stays)) {
    parts_.tier.Unreserve(size);
    return {Code::kCancelled, "the plan does not keep this sample"};
  }
  cache::Entry& entry = Insert(copy, {.bytes = std::move(bytes), .crc = crc});
  if (given_up) {
    AddSpare(copy.id, entry);
    TrimSpares();
  } else if (decision) {
    Obey(*decision, key, copy, entry, now);
  } else {
    if (key.stream != 0) entry.residence = cache::Residence::kUnplanned;
    Remember(key, copy);
  }
  return OkStatus();
}

Status RetentionManager::KeepByHome(const ReadKey& key, const Copy& copy, cache::SampleRef bytes,
                                    std::uint32_t crc, MonotonicTime now) {
  const bool moves = !IsHome(copy.id);
  if (moves && copy.borrower != kNoBorrower) {
    parts_.tier.Unreserve(bytes->size());
    return {Code::kCancelled, "this sample is kept at another node"};
  }
  cache::Entry& entry = Insert(copy, {.bytes = std::move(bytes), .crc = crc});
  if (moves) {
    entry.residence = cache::Residence::kOutgoing;
    const wire::MemberId home = parts_.holdings.homes().Home(copy.id);
    parts_.push_queue.Add({.id = copy.id, .receiver = home, .after = key}, entry, now);
  }
  return OkStatus();
}

bool RetentionManager::IsHome(SampleId id) const {
  const cache::HomeMap& homes = parts_.holdings.homes();
  return homes.empty() || homes.Home(id) == self_;
}

Status RetentionManager::KeepPushed(const ReadKey& kept_after, SampleId id, cache::SampleRef bytes,
                                    std::uint32_t crc) {
  const auto absence = absences_.find(id);
  const bool too_late = absence != absences_.end() && absence->second.stream == kept_after.stream &&
                        absence->second.pass > kept_after.pass;
  if (absence != absences_.end()) absences_.erase(absence);
  if (cache::Entry* const here = parts_.tier.Find(id); here != nullptr) {
    if (Planned() && ReadsAhead(kept_after, *here)) {
      NoteEarly({.id = id}, {.key = kept_after, .reader = {}});
    }
    parts_.tier.Unreserve(bytes->size());
    parts_.holdings.Gained(id);  // the sender may be the holder that its home knows
    if (too_late || here->residence != cache::Residence::kSpare) return OkStatus();
    TakeSpare(*here);  // its sender counts on it
    here->kept_after = ToKeptAfter(kept_after);
    return OkStatus();
  }
  cache::Entry& entry = Insert({.id = id}, {.bytes = std::move(bytes), .crc = crc});
  if (too_late) {
    GiveUp({.id = id}, parts_.counters.dropped_stale);
  } else if (Planned()) {
    entry.kept_after = ToKeptAfter(kept_after);
  }
  return OkStatus();
}

void RetentionManager::NoteAbsent(const ReadKey& key, SampleId id) {
  if (absences_.size() < kMaxAbsences) absences_[id] = key;
}

void RetentionManager::Remember(const ReadKey& key, const Copy& copy) {
  cache::Entry* entry = Find(copy);
  if (key.stream == 0) return;
  // A sample that was here before keeps its place in the inventory: it lay here at the cut.
  if (entry->residence == cache::Residence::kSpare) {  // no base names it
    TakeSpare(*entry);
    entry->residence = cache::Residence::kUnplanned;
  }
  entry->kept_after = ToKeptAfter(key);
  if (past_reads_.size() < kMaxPastReads) past_reads_.push_back({.key = key, .copy = copy});
}

void RetentionManager::OnNewPlan(MonotonicTime now) {
  std::vector<PastRead> still_unknown;
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = Find(read.copy);
    if (entry == nullptr || entry->kept_after != ToKeptAfter(read.key)) continue;
    if (const auto decision = parts_.plan_lookup.Find(read.key)) {
      // What lay here before the read is in the plan's base, for other reads.
      const bool stays = decision->beyond && entry->residence != cache::Residence::kUnplanned;
      if (!stays) Obey(*decision, read.key, read.copy, *entry, now);
    } else {
      still_unknown.push_back(read);
    }
  }
  past_reads_ = std::move(still_unknown);
}

void RetentionManager::OnPassReached(StreamId stream, PassNumber pass) {
  const auto is_stale = [&](const cache::Entry& entry) {
    return entry.residence == cache::Residence::kKept && entry.kept_after.stream == stream &&
           entry.kept_after.pass + kept_for_ < pass;
  };
  std::vector<SampleId> stale;
  parts_.tier.ForEach([&](SampleId id, const cache::Entry& entry) {
    if (is_stale(entry)) stale.push_back(id);
  });
  for (const SampleId id : stale)
    GiveUp({.id = id}, parts_.counters.dropped_stale);
  parts_.counters.dropped_stale += private_.EraseIf(is_stale);
  std::erase_if(absences_, [&](const auto& absence) {
    return absence.second.stream == stream && absence.second.pass + 1 < pass;
  });
  // The reads before them have been made.
  std::erase_if(early_reads_, [&](const auto& early) {
    return early.second.key.stream == stream && early.second.key.pass < pass;
  });
}

void RetentionManager::Evict(SampleId id, PassNumber before) {
  const auto goes = [before](const cache::Entry& entry) {
    return entry.residence == cache::Residence::kKept && entry.kept_after.pass < before;
  };
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry != nullptr && goes(*entry)) GiveUp({.id = id}, parts_.counters.dropped_by_plan);
  parts_.counters.dropped_by_plan += private_.EraseIf(id, goes);
}

void RetentionManager::OnStreamEnded(StreamId stream) {
  // What waited for its plan waits no more: it lies here for the next reader.
  for (const PastRead& read : past_reads_) {
    cache::Entry* entry = read.key.stream == stream ? Find(read.copy) : nullptr;
    if (entry != nullptr && entry->residence == cache::Residence::kUnplanned) {
      entry->residence = cache::Residence::kKept;
    }
  }
  std::erase_if(past_reads_, [&](const PastRead& read) { return read.key.stream == stream; });
  std::erase_if(absences_, [&](const auto& absence) { return absence.second.stream == stream; });
  std::erase_if(early_reads_, [&](const auto& early) { return early.second.key.stream == stream; });
  // Its passes are no measure of what is read from now on, be it in its next generation.
  const auto forget = [stream](cache::Entry& entry) {
    if (entry.kept_after.stream == stream) entry.kept_after = {.stream = stream};
  };
  parts_.tier.ForEach([&](SampleId, cache::Entry& entry) { forget(entry); });
  private_.ForEach(forget);
}

std::size_t RetentionManager::GiveAway(OnDisk on_disk, MonotonicTime deadline, MonotonicTime now) {
  std::vector<cache::MemberId> others = parts_.holdings.homes().members();
  std::erase(others, self_);
  if (others.empty()) return 0;
  const cache::HomeMap homes(parts_.holdings.homes().dataset(), std::move(others));
  std::vector<std::pair<double, SampleId>> soonest_first;
  parts_.tier.ForEach([&](SampleId id, const cache::Entry& entry) {
    if (entry.residence == cache::Residence::kOutgoing) return;
    if (entry.residence == cache::Residence::kSpare) return;
    if (entry.on_disk && on_disk == OnDisk::kStays) return;
    soonest_first.emplace_back(parts_.uses.NextUse(id), id);
  });
  std::ranges::sort(soonest_first);
  std::uint64_t turn = kTurnsByPlan;
  for (const auto& [_, id] : soonest_first) {
    cache::Entry& entry = *parts_.tier.Find(id);
    entry.residence = cache::Residence::kOutgoing;
    parts_.push_queue.Add({.id = id,
                           .receiver = homes.Home(id),
                           .deadline = deadline,
                           .turn = turn++,
                           .relocates = true},
                          entry, now);
  }
  return soonest_first.size();
}

void RetentionManager::Adopt(const cache::SegmentRecord& record) {
  parts_.holdings.Gained(record.id);
  cache::Entry& entry = parts_.tier.InsertOnDisk(record.id, record.length, {.crc = record.crc});
  if (Planned()) entry.kept_after = record.kept_after;
  Touch({.id = record.id}, entry);
}

void RetentionManager::LoseOnDisk(SampleId id) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry != nullptr && entry->on_disk) Drop({.id = id}, parts_.counters.dropped_by_disk);
}

void RetentionManager::OnMoved(SampleId id) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr || entry->residence != cache::Residence::kOutgoing) return;
  by_use_.erase(entry->last_use);
  parts_.tier.Erase(id);
  parts_.holdings.Lost(id);
}

void RetentionManager::OnMoveLost(SampleId id) {
  const cache::Entry* entry = parts_.tier.Find(id);
  if (entry == nullptr || entry->residence != cache::Residence::kOutgoing) return;
  GiveUp({.id = id}, parts_.counters.dropped_in_transit);
}

void RetentionManager::OnMoveRefused(SampleId id) {
  if (retention_ == Retention::kPin) OnMoveLost(id);  // its home is full, and stays full
}

std::vector<SampleId> RetentionManager::Inventory(OnDisk on_disk) const {
  std::vector<SampleId> ids;
  ids.reserve(parts_.tier.samples());
  parts_.tier.ForEach([&](SampleId id, const cache::Entry& entry) {
    const bool counts = entry.residence == cache::Residence::kKept ||
                        entry.residence == cache::Residence::kOutgoing;
    const bool stays = entry.on_disk && on_disk == OnDisk::kStays;
    if (counts && !stays) ids.push_back(id);
  });
  std::sort(ids.begin(), ids.end());
  return ids;
}

bool RetentionManager::EvictLeastRecentlyUsed(BorrowerId borrower) {
  if (borrower != kNoBorrower) {
    if (!private_.EraseOldest(borrower)) return false;
    ++parts_.counters.dropped_for_room;
    return true;
  }
  if (by_use_.empty()) return false;
  Drop({.id = by_use_.begin()->second}, parts_.counters.dropped_for_room);
  return true;
}

void RetentionManager::Touch(const Copy& copy, cache::Entry& entry) {
  if (copy.borrower != kNoBorrower) return private_.Touch(copy);
  const bool spare = entry.residence == cache::Residence::kSpare;
  TakeSpare(entry);
  by_use_.erase(entry.last_use);
  entry.last_use = ++uses_;
  by_use_[entry.last_use] = copy.id;
  if (spare) AddSpare(copy.id, entry);
}

void RetentionManager::Drop(const Copy& copy, std::uint64_t& reason) {
  ++reason;
  if (copy.borrower != kNoBorrower) return private_.Erase(copy);
  Erase(copy.id);
}

void RetentionManager::Erase(SampleId id) {
  parts_.push_queue.Cancel(id);
  if (cache::Entry* entry = parts_.tier.Find(id)) {
    TakeSpare(*entry);
    by_use_.erase(entry->last_use);
  }
  parts_.tier.Erase(id);
  parts_.holdings.Lost(id);
}

cache::Entry& RetentionManager::Insert(const Copy& copy, cache::Entry entry) {
  if (copy.borrower != kNoBorrower) return private_.Insert(copy, std::move(entry));
  private_.EraseIf(copy.id, [](const cache::Entry&) { return true; });  // this one is for all
  parts_.holdings.Gained(copy.id);
  cache::Entry& inserted = parts_.tier.Insert(copy.id, std::move(entry));
  Touch(copy, inserted);
  return inserted;
}

}  // namespace optcache::node
