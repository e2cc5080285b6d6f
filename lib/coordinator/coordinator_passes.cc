// What was read in whole passes, as all members together have told.

#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"
#include "coordinator/pass_sums.h"

namespace optcache::coordination {
namespace {

// A host looks every second, or every quarter of a minute where little happens.
constexpr Duration kEndedPassesKept = std::chrono::minutes(1);

ByteCount MeanBytes(const DatasetSpec& spec) {
  return spec.samples == 0 ? 0 : spec.bytes / spec.samples;
}

}  // namespace

// Of streams that are followed, by stream and pass.
std::vector<PassStatus> Coordinator::PassesOf(const DatasetEntry& dataset) const {
  std::vector<PassReport> sums = dataset.departed.passes;
  for (const auto& [id, entry] : members_) {
    const auto report = entry.datasets.find(
        {.name = dataset.spec.name, .manifest_digest = dataset.spec.manifest_digest});
    if (report != entry.datasets.end())
      sums.insert(sums.end(), report->second.passes.begin(), report->second.passes.end());
  }
  AddUp(sums);
  std::vector<PassStatus> passes;
  for (const PassReport& sum : sums) {
    const auto stream = dataset.streams.find(sum.stream);
    if (stream == dataset.streams.end()) continue;
    const TrackedStream& tracked = stream->second;
    passes.push_back({.stream = tracked.name(),
                      .length = tracked.pass_length(),
                      .complete = tracked.HasRead(sum.pass),
                      .sum = sum});
  }
  return passes;
}

// To be called before streams that have ended go.
void Coordinator::KeepEndedPasses(DatasetEntry& dataset, MonotonicTime now) const {
  std::erase_if(dataset.ended_passes,
                [now](const EndedPass& ended) { return now - ended.ended_at > kEndedPassesKept; });
  const bool some_end = std::ranges::any_of(
      dataset.streams, [](const auto& item) { return item.second.AllRanksEnded(); });
  if (!some_end) return;
  for (PassStatus& pass : PassesOf(dataset)) {
    const bool kept = pass.complete && dataset.streams.at(pass.sum.stream).AllRanksEnded() &&
                      dataset.ended_passes.size() < kMaxPassReports;
    if (kept) dataset.ended_passes.push_back({.pass = std::move(pass), .ended_at = now});
  }
  DatasetStatus status;
  AddPasses(dataset, status);
  const HitRatios ratios = RatiosOfPasses(status.passes, MeanBytes(dataset.spec));
  if (ratios.observed) dataset.ended_ratios = ratios;
}

void Coordinator::AddPasses(const DatasetEntry& dataset, DatasetStatus& status) const {
  status.passes = PassesOf(dataset);
  for (const EndedPass& ended : dataset.ended_passes) {
    // Of a stream that has begun another generation that one counts.
    const bool counts = !dataset.streams.contains(ended.pass.sum.stream);
    if (counts && status.passes.size() < kMaxPassReports) status.passes.push_back(ended.pass);
  }
  std::ranges::stable_sort(status.passes, {}, [](const PassStatus& pass) {
    return std::pair(pass.sum.stream, pass.sum.pass);
  });
}

HitRatios Coordinator::RatiosOf(const DatasetEntry& dataset, const DatasetStatus& status) const {
  HitRatios ratios = RatiosOfPasses(status.passes, MeanBytes(dataset.spec));
  if (!ratios.observed) ratios = dataset.ended_ratios;
  return ratios.observed ? ratios : dataset.recent.Ratios(status.sum);
}

}  // namespace optcache::coordination
