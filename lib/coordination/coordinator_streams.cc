// Which streams a coordinator follows.

#include <algorithm>

#include "coordination/coordinator.h"

namespace optcache::coordination {
namespace {

constexpr std::size_t kMaxRefusedNames = 8;

std::size_t WorldOf(const StreamReport& report) {
  std::size_t world = 0;
  for (const RankReport& rank : report.ranks)
    world = std::max<std::size_t>(world, rank.recipe.world);
  return world;
}

}  // namespace

void Coordinator::TakeStream(const StreamReport& report, MemberId member, MonotonicTime now) {
  const auto found = datasets_.find(report.dataset);
  if (found == datasets_.end()) return;
  DatasetEntry& dataset = found->second;
  auto stream = dataset.streams.find(report.id);
  // Ids are hashes of name and incarnation. One id of two streams is a collision, or a node that
  // does not say the truth: nobody's ranks are taken for another's.
  if (stream != dataset.streams.end() &&
      (stream->second.name() != report.name || stream->second.incarnation() != report.incarnation ||
       report.dataset_key != dataset.spec.key)) {
    return Refuse(dataset, report);
  }
  if (stream == dataset.streams.end()) {
    const bool reads =
        std::ranges::any_of(report.ranks, [](const RankReport& r) { return !r.ended; });
    if (!reads || !Supersede(dataset, report)) return;
    stream = dataset.streams.emplace(report.id, TrackedStream(report, now)).first;
  }
  for (const RankReport& rank : report.ranks)
    stream->second.Observe(rank, member, now);
}

void Coordinator::Refuse(DatasetEntry& dataset, const StreamReport& report) {
  const bool noted = std::ranges::find(dataset.refused, report.name) != dataset.refused.end();
  if (!noted && dataset.refused.size() < kMaxRefusedNames) dataset.refused.push_back(report.name);
}

bool Coordinator::HasRoomFor(const DatasetEntry& dataset, const StreamReport& report) const {
  if (dataset.streams.size() >= kMaxStreams) return false;
  const std::size_t own = WorldOf(report);
  std::size_t of_dataset = own;
  std::size_t of_all = own;
  for (const auto& [name, each] : datasets_) {
    for (const auto& [id, stream] : each.streams) {
      of_all += stream.world();
      if (&each == &dataset) of_dataset += stream.world();
    }
  }
  return of_dataset <= kMaxRanksOfDataset && of_all <= kMaxRanks;
}

// Whether a stream that is new may begin: it has the right manifest, there is room, and no later
// incarnation of it is known. An earlier one ends.
bool Coordinator::Supersede(DatasetEntry& dataset, const StreamReport& report) {
  if (report.dataset_key != dataset.spec.key || !HasRoomFor(dataset, report)) {
    Refuse(dataset, report);
    return false;
  }
  const bool outdated = std::ranges::any_of(dataset.streams, [&](const auto& item) {
    return item.second.name() == report.name && item.second.incarnation() > report.incarnation;
  });
  if (outdated) return false;
  std::erase_if(dataset.streams,
                [&](const auto& item) { return item.second.name() == report.name; });
  return true;
}

void Coordinator::EndStreams(DatasetEntry& dataset, MonotonicTime now) {
  std::erase_if(dataset.streams, [&](const auto& item) {
    const TrackedStream& stream = item.second;
    return stream.AllRanksEnded() || now - stream.heard() > options_.stream_silence;
  });
  for (auto& [id, stream] : dataset.streams)
    stream.LoseRanks(now - options_.rank_silence);
}

}  // namespace optcache::coordination
