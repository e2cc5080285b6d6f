#pragma once

// Samples that a borrower put and nothing proves: each is for that borrower alone.
//
// They lie apart from the memory tier, so that what is looked up, announced, pushed, given away or
// relayed from there is never one of them; but their bytes are taken from its budget. A private
// copy gives way to every sample for all, and to other borrowers that have less.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/ids.h"
#include "cache/memory_tier.h"

namespace optcache::node {

// A namespace that uses the dataset of another, by a number that this node gave it.
using BorrowerId = std::uint32_t;
inline constexpr BorrowerId kNoBorrower = 0;

// One copy of a sample: that for all who may use the dataset, or a borrower's own.
struct Copy {
  SampleId id = 0;
  BorrowerId borrower = kNoBorrower;
  friend auto operator<=>(const Copy&, const Copy&) = default;
};

// Not thread-safe: the event loop owns it.
class PrivateEntries {
 public:
  explicit PrivateEntries(cache::MemoryTier& budget) : budget_(budget) {}

  // Null when it is not here.
  cache::Entry* Find(const Copy& copy);
  // A copy that is not here yet, its bytes reserved in the budget.
  cache::Entry& Insert(const Copy& copy, cache::Entry entry);
  void Touch(const Copy& copy);
  void Erase(const Copy& copy);
  void EraseBorrower(BorrowerId borrower);
  // Erases what `goes`, of the copies of one sample or of all; returns how many.
  using Goes = std::function<bool(const cache::Entry&)>;
  std::size_t EraseIf(SampleId id, const Goes& goes);
  std::size_t EraseIf(const Goes& goes);

  void ForEach(const std::function<void(cache::Entry&)>& visit);

  // Erases one copy so that `size` bytes more may come for `borrower`, or for all: the one unused
  // longest of the borrower with the most bytes. False if none gives way: among borrowers one only
  // gives way to another that has less even with these bytes.
  bool MakeWay(BorrowerId borrower, ByteCount size);
  // How many bytes MakeWay would free at least.
  ByteCount GivesWay(BorrowerId borrower, ByteCount size) const;
  // The copy of this borrower that is unused longest; false if it has none.
  bool EraseOldest(BorrowerId borrower);

  ByteCount bytes() const;
  std::size_t samples() const;

 private:
  using Entries = std::unordered_map<SampleId, cache::Entry>;
  struct Share {  // of one borrower
    Entries entries;
    std::map<std::uint64_t, SampleId> by_use;  // the longest unused first
    ByteCount bytes = 0;
  };

  Entries::iterator Erase(Share& share, Entries::iterator entry);
  ByteCount BytesOf(BorrowerId borrower) const;

  cache::MemoryTier& budget_;
  std::map<BorrowerId, Share> shares_;
  std::uint64_t uses_ = 0;
};

}  // namespace optcache::node
