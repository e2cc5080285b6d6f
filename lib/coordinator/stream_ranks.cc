#include "coordinator/stream_ranks.h"

#include <utility>

namespace optcache::coordination {
namespace {

constexpr std::uint64_t kOneMore = 1;
constexpr std::uint64_t kOneLess = ~std::uint64_t{0};  // -1, modulo 2^64

}  // namespace

const RankEntry* StreamRanks::Find(Rank rank) const {
  const auto found = entries_.find(rank);
  return found == entries_.end() ? nullptr : &found->second;
}

void StreamRanks::Set(Rank rank, RankEntry entry) {
  const auto [place, is_new] = entries_.try_emplace(rank);
  if (!is_new) Count(place->second, kOneLess);
  place->second = std::move(entry);
  Count(place->second, kOneMore);
}

void StreamRanks::LoseSilent(MonotonicTime lost_before) {
  for (auto& [rank, entry] : entries_) {
    if (entry.heard < lost_before && !entry.report.ended) SetMember(entry, 0);
  }
}

void StreamRanks::ForgetMember(MemberId member) {
  for (auto& [rank, entry] : entries_) {
    if (entry.member == member) SetMember(entry, 0);
    if (entry.last_member == member) entry.last_member = 0;
  }
}

void StreamRanks::Forgive(Duration pause) {
  for (auto& [rank, entry] : entries_)
    entry.heard += pause;
}

void StreamRanks::SetMember(RankEntry& entry, MemberId member) {
  if (entry.member == member) return;
  Count(entry, kOneLess);
  entry.member = member;
  Count(entry, kOneMore);
}

void StreamRanks::Count(const RankEntry& entry, std::uint64_t times) {
  const RankReport& report = entry.report;
  const bool lost = entry.member == 0;
  if (lost) totals_.lost += times;
  if (report.ended) totals_.ended += times;
  if (lost || report.ended) totals_.idle += times;
  if (report.recipe.known && report.order_known) totals_.predicted += times;
  if (report.started && !report.order_known) totals_.astray += times;
  if (!report.traces.empty()) totals_.with_traces += times;
  if (report.started && !lost) {
    totals_.reading += times;
    totals_.passes += report.pass * times;
    totals_.positions += report.position * times;
  }
  const auto alike = totals_.pass_reads.try_emplace(report.pass_reads).first;
  alike->second += times;
  if (alike->second == 0) totals_.pass_reads.erase(alike);
}

}  // namespace optcache::coordination
