#pragma once

// The ranks of a stream that have been heard of, and what they come to together. A report tells of
// one rank: what the stream makes of it must not look at the thousand others.

#include <cstdint>
#include <map>

#include "base/clock.h"
#include "coordination/state.h"

namespace optcache::coordination {

struct RankEntry {
  RankReport report;
  MemberId member = 0;  // 0: lost
  MemberId last_member = 0;
  MonotonicTime heard;
};

// How many ranks are what. Sums are modulo 2^64.
struct RankTotals {
  std::uint64_t lost = 0;
  std::uint64_t ended = 0;
  std::uint64_t idle = 0;         // lost or ended
  std::uint64_t predicted = 0;    // have a recipe and read by it
  std::uint64_t astray = 0;       // have begun, and read something else than they said
  std::uint64_t with_traces = 0;  // name lists
  std::uint64_t reading = 0;      // have begun and are not lost
  std::uint64_t passes = 0;       // of those that read: the sum of their passes,
  std::uint64_t positions = 0;    // and of their positions
  std::map<std::uint64_t, std::uint64_t> pass_reads;  // ranks by RankReport::pass_reads
  friend bool operator==(const RankTotals&, const RankTotals&) = default;
};

// A value.
class StreamRanks {
 public:
  using Entries = std::map<Rank, RankEntry>;

  const Entries& entries() const { return entries_; }
  const RankTotals& totals() const { return totals_; }
  std::size_t size() const { return entries_.size(); }
  // Borrowed until the next change; nullptr: not heard of.
  const RankEntry* Find(Rank rank) const;

  void Set(Rank rank, RankEntry entry);
  // Ranks heard before `lost_before` read through no member, unless they have ended.
  void LoseSilent(MonotonicTime lost_before);
  void ForgetMember(MemberId member);
  // Nobody listened for this long.
  void Forgive(Duration pause);

 private:
  void SetMember(RankEntry& entry, MemberId member);
  void Count(const RankEntry& entry, std::uint64_t times);

  Entries entries_;
  RankTotals totals_;
};

}  // namespace optcache::coordination
