#include "coordinator/read_ratios.h"

#include <algorithm>

#include "coordinator/observed_passes.h"

namespace optcache::coordination {
namespace {

constexpr Duration kMinute = std::chrono::minutes(1);
constexpr Duration kRecent = std::chrono::minutes(15);

std::optional<double> ShareOf(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::uint64_t LessOf(std::uint64_t all, std::uint64_t before) {
  return all - std::min(all, before);
}

}  // namespace

HitRatios RatiosOfPasses(const std::vector<PassStatus>& passes, ByteCount mean_sample_bytes) {
  const LatestPasses latest = LatestOf(passes, {}, mean_sample_bytes);
  HitRatios ratios;
  if (const auto observed = ObservedOf(latest.sums, latest.streams))
    ratios.observed = static_cast<double>(observed->numbers.hit_permille) / kPermilleInOne;
  if (const auto planned = PlannedOf(latest.sums, latest.streams); planned && ratios.observed)
    ratios.predicted = static_cast<double>(planned->hit_permille) / kPermilleInOne;
  return ratios;
}

bool RecentReads::IsDue(MonotonicTime now) const {
  return minutes_.empty() || now - minutes_.back().at >= kMinute;
}

void RecentReads::Take(const DatasetReport& sum, MonotonicTime now) {
  minutes_.push_back({.at = now, .counts = CountsOf(sum)});
  while (now - minutes_.front().at > kRecent)
    minutes_.pop_front();
}

void RecentReads::LeaveOut(const DatasetReport& counted) {
  const Counts counts = CountsOf(counted);
  for (Minute& minute : minutes_) {
    minute.counts.reads += counts.reads;
    minute.counts.hits += counts.hits;
    minute.counts.covered_reads += counts.covered_reads;
    minute.counts.covered_hits += counts.covered_hits;
    minute.counts.planned_hits += counts.planned_hits;
  }
}

HitRatios RecentReads::Ratios(const DatasetReport& sum) const {
  if (minutes_.empty()) return {};
  const Counts counts = Less(CountsOf(sum), minutes_.front().counts);
  // As of whole passes: a plan that covers less than nine tenths predicts nothing.
  if (counts.covered_reads == 0 || counts.covered_reads * 10 < counts.reads * 9)
    return {.observed = ShareOf(counts.hits, counts.reads)};
  return {.observed = ShareOf(counts.covered_hits, counts.covered_reads),
          .predicted = ShareOf(counts.planned_hits, counts.covered_reads)};
}

RecentReads::Counts RecentReads::CountsOf(const DatasetReport& sum) {
  return {.reads = sum.hits + sum.peer_hits + sum.misses,
          .hits = sum.hits + sum.peer_hits,
          .covered_reads = sum.covered_reads,
          .covered_hits = sum.covered_hits,
          .planned_hits = LessOf(sum.covered_reads, sum.planned_misses)};
}

RecentReads::Counts RecentReads::Less(const Counts& all, const Counts& before) {
  return {.reads = LessOf(all.reads, before.reads),
          .hits = LessOf(all.hits, before.hits),
          .covered_reads = LessOf(all.covered_reads, before.covered_reads),
          .covered_hits = LessOf(all.covered_hits, before.covered_hits),
          .planned_hits = LessOf(all.planned_hits, before.planned_hits)};
}

}  // namespace optcache::coordination
