#include "cache-node/retention/private_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace optcache::node {

cache::Entry* PrivateCopies::Find(const Copy& copy) {
  const auto shelf = shelves_.find(copy.guest);
  if (shelf == shelves_.end()) return nullptr;
  const auto it = shelf->second.entries.find(copy.id);
  return it == shelf->second.entries.end() ? nullptr : &it->second;
}

cache::Entry& PrivateCopies::Insert(const Copy& copy, cache::Entry entry) {
  CHECK(copy.guest != kNoGuest && entry.bytes != nullptr);
  entry.size = entry.bytes->size();
  Shelf& shelf = shelves_[copy.guest];
  shelf.bytes += entry.bytes->size();
  const auto [it, is_new] = shelf.entries.emplace(copy.id, std::move(entry));
  CHECK(is_new);
  Touch(copy);
  return it->second;
}

void PrivateCopies::Touch(const Copy& copy) {
  Shelf& shelf = shelves_[copy.guest];
  cache::Entry& entry = shelf.entries.at(copy.id);
  shelf.by_use.erase(entry.last_use);
  entry.last_use = ++uses_;
  shelf.by_use[entry.last_use] = copy.id;
}

PrivateCopies::Entries::iterator PrivateCopies::Erase(Shelf& shelf, Entries::iterator entry) {
  const ByteCount size = entry->second.bytes->size();
  budget_.Unreserve(size);
  shelf.bytes -= size;
  shelf.by_use.erase(entry->second.last_use);
  return shelf.entries.erase(entry);
}

void PrivateCopies::Erase(const Copy& copy) {
  Shelf& shelf = shelves_[copy.guest];
  const auto it = shelf.entries.find(copy.id);
  if (it != shelf.entries.end()) Erase(shelf, it);
}

void PrivateCopies::EraseGuest(GuestId guest) {
  const auto shelf = shelves_.find(guest);
  if (shelf == shelves_.end()) return;
  budget_.Unreserve(shelf->second.bytes);
  shelves_.erase(shelf);
}

std::size_t PrivateCopies::EraseIf(SampleId id, const Goes& goes) {
  std::size_t erased = 0;
  for (auto& [_, shelf] : shelves_) {
    const auto it = shelf.entries.find(id);
    if (it == shelf.entries.end() || !goes(it->second)) continue;
    Erase(shelf, it);
    ++erased;
  }
  return erased;
}

std::size_t PrivateCopies::EraseIf(const Goes& goes) {
  std::size_t erased = 0;
  for (auto& [_, shelf] : shelves_) {
    for (auto it = shelf.entries.begin(); it != shelf.entries.end();) {
      const bool gone = goes(it->second);
      it = gone ? Erase(shelf, it) : std::next(it);
      erased += gone ? 1U : 0U;
    }
  }
  return erased;
}

void PrivateCopies::ForEach(const std::function<void(cache::Entry&)>& visit) {
  for (auto& [_, shelf] : shelves_) {
    for (auto& [id, entry] : shelf.entries)
      visit(entry);
  }
}

bool PrivateCopies::EraseOldest(GuestId guest) {
  const auto shelf = shelves_.find(guest);
  if (shelf == shelves_.end() || shelf->second.by_use.empty()) return false;
  Erase({.id = shelf->second.by_use.begin()->second, .guest = guest});
  return true;
}

bool PrivateCopies::MakeWay(GuestId guest, ByteCount size) {
  const auto largest =
      std::ranges::max_element(shelves_, {}, [](const auto& one) { return one.second.bytes; });
  if (largest == shelves_.end()) return false;
  if (guest != kNoGuest && largest->second.bytes <= BytesOf(guest) + size) return false;
  return EraseOldest(largest->first);
}

ByteCount PrivateCopies::GivesWay(GuestId guest, ByteCount size) const {
  if (guest == kNoGuest) return bytes();
  const ByteCount wanted = BytesOf(guest) + size;
  ByteCount sum = 0;
  for (const auto& [_, shelf] : shelves_)
    sum += shelf.bytes - std::min(shelf.bytes, wanted);
  return sum;
}

ByteCount PrivateCopies::BytesOf(GuestId guest) const {
  const auto shelf = shelves_.find(guest);
  return shelf == shelves_.end() ? 0 : shelf->second.bytes;
}

ByteCount PrivateCopies::bytes() const {
  ByteCount sum = 0;
  for (const auto& [_, shelf] : shelves_)
    sum += shelf.bytes;
  return sum;
}

std::size_t PrivateCopies::samples() const {
  std::size_t sum = 0;
  for (const auto& [_, shelf] : shelves_)
    sum += shelf.entries.size();
  return sum;
}

}  // namespace optcache::node
