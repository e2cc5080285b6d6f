#include "cache-node/retention/private_entries.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace optcache::node {

cache::Entry* PrivateEntries::Find(const Copy& copy) {
  const auto share = shares_.find(copy.borrower);
  if (share == shares_.end()) return nullptr;
  const auto it = share->second.entries.find(copy.id);
  return it == share->second.entries.end() ? nullptr : &it->second;
}

cache::Entry& PrivateEntries::Insert(const Copy& copy, cache::Entry entry) {
  CHECK(copy.borrower != kNoBorrower && entry.bytes != nullptr);
  entry.size = entry.bytes->size();
  Share& share = shares_[copy.borrower];
  share.bytes += entry.bytes->size();
  const auto [it, is_new] = share.entries.emplace(copy.id, std::move(entry));
  CHECK(is_new);
  Touch(copy);
  return it->second;
}

void PrivateEntries::Touch(const Copy& copy) {
  Share& share = shares_[copy.borrower];
  cache::Entry& entry = share.entries.at(copy.id);
  share.by_use.erase(entry.last_use);
  entry.last_use = ++uses_;
  share.by_use[entry.last_use] = copy.id;
}

PrivateEntries::Entries::iterator PrivateEntries::Erase(Share& share, Entries::iterator entry) {
  const ByteCount size = entry->second.bytes->size();
  budget_.Unreserve(size);
  share.bytes -= size;
  share.by_use.erase(entry->second.last_use);
  return share.entries.erase(entry);
}

void PrivateEntries::Erase(const Copy& copy) {
  Share& share = shares_[copy.borrower];
  const auto it = share.entries.find(copy.id);
  if (it != share.entries.end()) Erase(share, it);
}

void PrivateEntries::EraseBorrower(BorrowerId borrower) {
  const auto share = shares_.find(borrower);
  if (share == shares_.end()) return;
  budget_.Unreserve(share->second.bytes);
  shares_.erase(share);
}

std::size_t PrivateEntries::EraseIf(SampleId id, const Goes& goes) {
  std::size_t erased = 0;
  for (auto& [_, share] : shares_) {
    const auto it = share.entries.find(id);
    if (it == share.entries.end() || !goes(it->second)) continue;
    Erase(share, it);
    ++erased;
  }
  return erased;
}

std::size_t PrivateEntries::EraseIf(const Goes& goes) {
  std::size_t erased = 0;
  for (auto& [_, share] : shares_) {
    for (auto it = share.entries.begin(); it != share.entries.end();) {
      const bool gone = goes(it->second);
      it = gone ? Erase(share, it) : std::next(it);
      erased += gone ? 1U : 0U;
    }
  }
  return erased;
}

void PrivateEntries::ForEach(const std::function<void(cache::Entry&)>& visit) {
  for (auto& [_, share] : shares_) {
    for (auto& [id, entry] : share.entries)
      visit(entry);
  }
}

bool PrivateEntries::EraseOldest(BorrowerId borrower) {
  const auto share = shares_.find(borrower);
  if (share == shares_.end() || share->second.by_use.empty()) return false;
  Erase({.id = share->second.by_use.begin()->second, .borrower = borrower});
  return true;
}

bool PrivateEntries::MakeWay(BorrowerId borrower, ByteCount size) {
  const auto largest =
      std::ranges::max_element(shares_, {}, [](const auto& one) { return one.second.bytes; });
  if (largest == shares_.end()) return false;
  if (borrower != kNoBorrower && largest->second.bytes <= BytesOf(borrower) + size) return false;
  return EraseOldest(largest->first);
}

ByteCount PrivateEntries::GivesWay(BorrowerId borrower, ByteCount size) const {
  if (borrower == kNoBorrower) return bytes();
  const ByteCount wanted = BytesOf(borrower) + size;
  ByteCount sum = 0;
  for (const auto& [_, share] : shares_)
    sum += share.bytes - std::min(share.bytes, wanted);
  return sum;
}

ByteCount PrivateEntries::BytesOf(BorrowerId borrower) const {
  const auto share = shares_.find(borrower);
  return share == shares_.end() ? 0 : share->second.bytes;
}

ByteCount PrivateEntries::bytes() const {
  ByteCount sum = 0;
  for (const auto& [_, share] : shares_)
    sum += share.bytes;
  return sum;
}

std::size_t PrivateEntries::samples() const {
  std::size_t sum = 0;
  for (const auto& [_, share] : shares_)
    sum += share.entries.size();
  return sum;
}

}  // namespace optcache::node
