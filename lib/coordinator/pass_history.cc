// Adds up what members have counted of one manifest, and keeps what is worth knowing of it later.
//
// The idea: a number is the sum over the members' last reports and over `departed_`, the last
// reports of members that have gone, so counters do not fall when a node goes. Passes are known
// from streams that read, and for a while after these have ended.
//
// Invariants: what a member has counted is in one of `reports_` and `departed_`. At most
// kMaxPassReports passes of ended streams are kept.

#include "coordinator/pass_history.h"

#include <algorithm>
#include <utility>

#include "coordinator/pass_sums.h"

namespace optcache::coordination {
namespace {

// A host looks every second, or every quarter of a minute where little happens.
constexpr Duration kEndedPassesKept = std::chrono::minutes(1);

void AddCounters(const DatasetReport& from, DatasetReport& to) {
  to.hits += from.hits;
  to.peer_hits += from.peer_hits;
  to.misses += from.misses;
  to.miss_bytes += from.miss_bytes;
  to.moves += from.moves;
  to.moved_bytes += from.moved_bytes;
  to.planned_misses += from.planned_misses;
  to.covered_reads += from.covered_reads;
  to.covered_hits += from.covered_hits;
  to.passes.insert(to.passes.end(), from.passes.begin(), from.passes.end());
  AddUp(to.passes);
  KeepLatest(to.passes);
}

// Sums of the members' counters; the predicted ratio is weighted by requests, or plain before any.
class CounterSum {
 public:
  explicit CounterSum(DatasetReport departed) : sum_(std::move(departed)) {}

  void Add(const DatasetReport& report) {
    sum_.used_bytes += report.used_bytes;
    sum_.disk_used_bytes += report.disk_used_bytes;
    sum_.samples += report.samples;
    sum_.hits += report.hits;
    sum_.peer_hits += report.peer_hits;
    sum_.misses += report.misses;
    sum_.miss_bytes += report.miss_bytes;
    sum_.moves += report.moves;
    sum_.moved_bytes += report.moved_bytes;
    sum_.planned_misses += report.planned_misses;
    sum_.covered_reads += report.covered_reads;
    sum_.covered_hits += report.covered_hits;
    const double weight = 1.0 + static_cast<double>(report.hits + report.peer_hits + report.misses);
    weighted_ += report.predicted_hit_ratio * weight;
    weights_ += weight;
  }
  DatasetReport Finish() {
    sum_.predicted_hit_ratio = weights_ > 0 ? weighted_ / weights_ : 0;
    return sum_;
  }

 private:
  DatasetReport sum_;
  double weighted_ = 0;
  double weights_ = 0;
};

}  // namespace

void PassHistory::Take(MemberId member, const DatasetReport& report) {
  if (reports_.insert_or_assign(member, report).second) recent_.LeaveOut(report);
}

void PassHistory::MemberHasGone(MemberId member) {
  const auto found = reports_.find(member);
  if (found == reports_.end()) return;
  AddCounters(found->second, departed_);
  reports_.erase(found);
}

void PassHistory::ForgetPasses(StreamId stream) {
  std::erase_if(departed_.passes,
                [stream](const PassReport& pass) { return pass.stream == stream; });
}

void PassHistory::FollowRecent(MonotonicTime now) {
  if (recent_.IsDue(now)) recent_.Take(Sum(), now);
}

void PassHistory::KeepEndedPasses(const TrackedStreams& streams, ByteCount mean_sample_bytes,
                                  MonotonicTime now) {
  std::erase_if(ended_passes_,
                [now](const EndedPass& ended) { return now - ended.ended_at > kEndedPassesKept; });
  const bool some_end =
      std::ranges::any_of(streams, [](const auto& item) { return item.second.AllRanksEnded(); });
  if (!some_end) return;
  for (PassStatus& pass : PassesOf(streams)) {
    const bool kept = pass.complete && streams.at(pass.sum.stream).AllRanksEnded() &&
                      ended_passes_.size() < kMaxPassReports;
    if (kept) ended_passes_.push_back({.pass = std::move(pass), .ended_at = now});
  }
  const HitRatios ratios = RatiosOfPasses(Passes(streams), mean_sample_bytes);
  if (ratios.observed) ended_ratios_ = ratios;
}

DatasetReport PassHistory::Sum() const {
  CounterSum sum(departed_);
  for (const auto& [member, report] : reports_)
    sum.Add(report);
  return sum.Finish();
}

// Of streams that are followed, by stream and pass.
std::vector<PassStatus> PassHistory::PassesOf(const TrackedStreams& streams) const {
  std::vector<PassReport> sums = departed_.passes;
  for (const auto& [member, report] : reports_)
    sums.insert(sums.end(), report.passes.begin(), report.passes.end());
  AddUp(sums);
  std::vector<PassStatus> passes;
  for (const PassReport& sum : sums) {
    const auto stream = streams.find(sum.stream);
    if (stream == streams.end()) continue;
    const TrackedStream& tracked = stream->second;
    passes.push_back({.stream = tracked.name(),
                      .length = tracked.pass_length(),
                      .complete = tracked.HasRead(sum.pass),
                      .sum = sum});
  }
  return passes;
}

std::vector<PassStatus> PassHistory::Passes(const TrackedStreams& streams) const {
  std::vector<PassStatus> passes = PassesOf(streams);
  for (const EndedPass& ended : ended_passes_) {
    // Of a stream that has begun another generation that one counts.
    const bool counts = !streams.contains(ended.pass.sum.stream);
    if (counts && passes.size() < kMaxPassReports) passes.push_back(ended.pass);
  }
  std::ranges::stable_sort(
      passes, {}, [](const PassStatus& pass) { return std::pair(pass.sum.stream, pass.sum.pass); });
  return passes;
}

HitRatios PassHistory::Ratios(const std::vector<PassStatus>& passes, const DatasetReport& sum,
                              ByteCount mean_sample_bytes) const {
  HitRatios ratios = RatiosOfPasses(passes, mean_sample_bytes);
  if (!ratios.observed) ratios = ended_ratios_;
  return ratios.observed ? ratios : recent_.Ratios(sum);
}

}  // namespace optcache::coordination
