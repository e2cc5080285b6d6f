// What the plan has given up, and what goes to another node or from memory where there is too
// little room.

#include "cache-node/retention/retention_manager.h"

namespace optcache::node {

void RetentionManager::AddSpare(SampleId id, cache::Entry& entry) {
  entry.residence = cache::Residence::kSpare;
  entry.kept_after = {};
  Spares& spares = SparesWith(entry);
  spares.by_use[entry.last_use] = id;
  spares.bytes += entry.size;
}

void RetentionManager::TakeSpare(cache::Entry& entry) {
  if (entry.residence != cache::Residence::kSpare) return;
  Spares& spares = SparesWith(entry);
  spares.by_use.erase(entry.last_use);
  spares.bytes -= entry.size;
  entry.residence = cache::Residence::kKept;
}

void RetentionManager::GiveUp(const Copy& copy, std::uint64_t& reason) {
  if (copy.borrower != kNoBorrower || !Planned()) return Drop(copy, reason);
  cache::Entry& entry = *parts_.tier.Find(copy.id);
  parts_.push_queue.Cancel(copy.id);
  if (entry.residence == cache::Residence::kSpare) return;
  ++reason;
  AddSpare(copy.id, entry);
  TrimSpares();
}

// Of all that is spare.
void RetentionManager::GoesFirst(const Copy& copy) {
  cache::Entry* const entry = copy.borrower == kNoBorrower ? parts_.tier.Find(copy.id) : nullptr;
  if (entry == nullptr || entry->residence != cache::Residence::kSpare) return;
  TakeSpare(*entry);
  by_use_.erase(entry->last_use);
  entry->last_use = --before_all_uses_;
  by_use_[entry->last_use] = copy.id;
  AddSpare(copy.id, *entry);
}

bool RetentionManager::DropOldest(Spares& spares) {
  if (spares.by_use.empty()) return false;
  Erase(spares.by_use.begin()->second);
  return true;
}

// Where memory has no room, what lies on the disk makes none.
bool RetentionManager::DropSpareFor(ByteCount size) {
  if (DropOldest(spares_in_memory_)) return true;
  return !parts_.tier.WaitsForDisk(size) && DropOldest(spares_on_disk_);
}

void RetentionManager::TrimSpares() {
  while (parts_.tier.used() > parts_.tier.capacity() && DropSpareFor(0)) {
  }
}

void RetentionManager::KeepSpares() {
  for (Spares* spares : {&spares_in_memory_, &spares_on_disk_}) {
    while (!spares->by_use.empty())
      TakeSpare(*parts_.tier.Find(spares->by_use.begin()->second));
  }
}

void RetentionManager::MakeRoomOnDisk(ByteCount bytes) {
  while (parts_.tier.on_disk() + bytes > parts_.tier.disk() && DropOldest(spares_on_disk_)) {
  }
}

void RetentionManager::TrimToCapacity() {
  TrimSpares();
  while (parts_.tier.used() > parts_.tier.capacity()) {
    if (private_.MakeWay(kNoBorrower, 1)) {
      ++parts_.counters.dropped_for_room;
    } else if (!EvictLeastRecentlyUsed(kNoBorrower)) {
      return;
    }
  }
}

// Nothing has to go for it, now or soon.
bool RetentionManager::HasRoomToSpare(const ReadKey& key, const Copy& copy, ByteCount size) const {
  if (!Planned() || copy.borrower != kNoBorrower || parts_.tier.Find(copy.id) != nullptr)
    return false;
  const auto decision = parts_.plan_lookup.Find(key);
  return decision && !decision->beyond && parts_.tier.FitsCapacity(size) &&
         parts_.tier.in_memory() + size <= parts_.tier.memory();
}

std::size_t RetentionManager::Relocate(const std::vector<Departure>& departures, OnDisk on_disk,
                                       MonotonicTime deadline, MonotonicTime now) {
  std::size_t samples = 0;
  for (const auto& [id, receiver] : departures) {
    cache::Entry* const entry = parts_.tier.Find(id);
    if (entry == nullptr || entry->residence == cache::Residence::kUnplanned) continue;
    if (entry->on_disk && on_disk == OnDisk::kStays) continue;
    TakeSpare(*entry);
    entry->residence = cache::Residence::kOutgoing;
    parts_.push_queue.Add({.id = id,
                           .receiver = receiver,
                           .deadline = deadline,
                           .turn = ++samples,
                           .relocates = true},
                          *entry, now);
  }
  return samples;
}

}  // namespace optcache::node
