#include "sidecar/computed/computed_values.h"

#include <algorithm>

namespace optcache::sidecar {

BufferRef ComputedValues::Find(SampleId id) const {
  const auto found = kept_.find(id);
  return found == kept_.end() ? nullptr : found->second.value;
}

void ComputedValues::SetNextUse(SampleId id, UseTime next) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return;
  by_use_.erase({found->second.next, id});
  found->second.next = next;
  by_use_.emplace(next, id);
}

void ComputedValues::SetNextUses(const std::vector<UseTime>& next) {
  by_use_.clear();
  for (auto& [id, kept] : kept_) {
    kept.next = next.at(id);
    by_use_.emplace(kept.next, id);
  }
}

bool ComputedValues::GivesWay(UseTime kept, UseTime to, Ties ties) {
  if (to == kNoUse) return false;
  return kept == kNoUse || (ties == Ties::kGiveWay && kept > to);
}

ByteCount ComputedValues::RoomFor(UseTime next, Ties ties) const {
  const bool one_gives_way = !by_use_.empty() && GivesWay(by_use_.rbegin()->first, next, ties);
  return one_gives_way ? capacity_ : capacity_ - taken();
}

// Nothing is to give way for a value that does not come in after all.
bool ComputedValues::CanMakeRoom(ByteCount length, UseTime next, Ties ties) const {
  ByteCount room = capacity_ - taken();
  for (auto last = by_use_.rbegin(); room < length && last != by_use_.rend(); ++last) {
    if (!GivesWay(last->first, next, ties)) return false;
    room += kept_.at(last->second).value->bytes().size();
  }
  return room >= length;
}

BufferRef ComputedValues::Reserve(ByteCount length, UseTime next, Ties ties) {
  if (!CanMakeRoom(length, next, ties)) return nullptr;
  while (capacity_ - taken() < length)
    Evict();
  BufferRef buffer = memory_.AllocateInArena(length);
  // Pieces that are free may be too short, and values that somebody reads free nothing yet.
  while (buffer == nullptr && !by_use_.empty() && GivesWay(by_use_.rbegin()->first, next, ties)) {
    Evict();
    buffer = memory_.AllocateInArena(length);
  }
  if (buffer != nullptr) reserved_ += length;
  return buffer;
}

void ComputedValues::Evict() {
  const auto last = std::prev(by_use_.end());
  const auto found = kept_.find(last->second);
  bytes_ -= found->second.value->bytes().size();
  ++evictions_;
  by_use_.erase(last);
  kept_.erase(found);
}

void ComputedValues::GiveBack(const BufferRef& reserved) {
  reserved_ -= reserved->bytes().size();
}

void ComputedValues::Keep(SampleId id, BufferRef reserved, UseTime next) {
  const ByteCount length = reserved->bytes().size();
  reserved_ -= length;
  if (!kept_.try_emplace(id, Kept{.value = std::move(reserved), .next = next}).second) return;
  bytes_ += length;
  by_use_.emplace(next, id);
}

void ComputedValues::Clear() {
  kept_.clear();
  by_use_.clear();
  bytes_ = 0;
}

}  // namespace optcache::sidecar
