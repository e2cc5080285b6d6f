// What the plan has given up, and what goes where there is too little room.

#include "cache-node/retention/keeper.h"

namespace optcache::node {

void Keeper::AddSpare(SampleId id, cache::Entry& entry) {
  entry.residence = cache::Residence::kSpare;
  entry.kept_after = {};
  Spares& spares = SparesWith(entry);
  spares.by_use[entry.last_use] = id;
  spares.bytes += entry.size;
}

void Keeper::TakeSpare(cache::Entry& entry) {
  if (entry.residence != cache::Residence::kSpare) return;
  Spares& spares = SparesWith(entry);
  spares.by_use.erase(entry.last_use);
  spares.bytes -= entry.size;
  entry.residence = cache::Residence::kKept;
}

void Keeper::GiveUp(const Copy& copy, std::uint64_t& reason) {
  if (copy.guest != kNoGuest || !Planned()) return Drop(copy, reason);
  cache::Entry& entry = *parts_.tier.Find(copy.id);
  parts_.mover.Cancel(copy.id);
  if (entry.residence == cache::Residence::kSpare) return;
  ++reason;
  AddSpare(copy.id, entry);
  TrimSpares();
}

// Of all that is spare.
void Keeper::GoesFirst(const Copy& copy) {
  cache::Entry* const entry = copy.guest == kNoGuest ? parts_.tier.Find(copy.id) : nullptr;
  if (entry == nullptr || entry->residence != cache::Residence::kSpare) return;
  TakeSpare(*entry);
  by_use_.erase(entry->last_use);
  entry->last_use = --before_all_uses_;
  by_use_[entry->last_use] = copy.id;
  AddSpare(copy.id, *entry);
}

bool Keeper::DropOldest(Spares& spares) {
  if (spares.by_use.empty()) return false;
  Erase(spares.by_use.begin()->second);
  return true;
}

// Where memory has no room, what lies on the disk makes none.
bool Keeper::DropSpareFor(ByteCount size) {
  if (DropOldest(spares_in_memory_)) return true;
  return !parts_.tier.WaitsForDisk(size) && DropOldest(spares_on_disk_);
}

void Keeper::TrimSpares() {
  while (parts_.tier.used() > parts_.tier.capacity() && DropSpareFor(0)) {
  }
}

void Keeper::KeepSpares() {
  for (Spares* spares : {&spares_in_memory_, &spares_on_disk_}) {
    while (!spares->by_use.empty())
      TakeSpare(*parts_.tier.Find(spares->by_use.begin()->second));
  }
}

void Keeper::MakeRoomOnDisk(ByteCount bytes) {
  while (parts_.tier.on_disk() + bytes > parts_.tier.disk() && DropOldest(spares_on_disk_)) {
  }
}

void Keeper::TrimToCapacity() {
  TrimSpares();
  while (parts_.tier.used() > parts_.tier.capacity()) {
    if (private_.MakeWay(kNoGuest, 1)) {
      ++parts_.counters.dropped_for_room;
    } else if (!EvictLeastRecentlyUsed(kNoGuest)) {
      return;
    }
  }
}

// Nothing has to go for it, now or soon.
bool Keeper::HasRoomToSpare(const ReadKey& key, const Copy& copy, ByteCount size) const {
  if (!Planned() || copy.guest != kNoGuest || parts_.tier.Find(copy.id) != nullptr) return false;
  const auto verdict = parts_.verdicts.Find(key);
  return verdict && !verdict->beyond && parts_.tier.FitsCapacity(size) &&
         parts_.tier.in_memory() + size <= parts_.tier.memory();
}

}  // namespace optcache::node
