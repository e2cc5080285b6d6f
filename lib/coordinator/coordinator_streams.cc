// Decides which streams a coordinator follows, and in which generation of a stream a rank reads.
//
// The idea: a stream that is not known begins if there is room for its ranks and no later
// incarnation of it is known; earlier ones end (Supersede). A rank that was started again reads in
// the stream's next generation, beside the ranks that go on in the present one. The next generation
// takes the stream's place when all of its ranks are known, or when nobody reads in the present one
// any more (BeginNextGenerations).
//
// Invariants: the ranks of all streams together are bounded, where a stream counts with the larger
// of its generations (HasRoomFor). A report of an id that is another stream's, or that finds no
// room, changes no stream: only the names that the status shows, and, by Adopt, which manifests are
// kept.

#include <algorithm>

#include "coordinator/coordinator.h"

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

void Coordinator::TakeStream(const Report& from, const StreamReport& report, MemberId member,
                             MonotonicTime now) {
  const std::vector<DatasetEntry*> manifests = ManifestsOf(report.dataset);
  if (manifests.empty()) return;
  const bool reads =
      std::ranges::any_of(report.ranks, [](const RankReport& r) { return !r.ended; });
  const auto found = std::ranges::find_if(manifests, [&](const DatasetEntry* manifest) {
    return manifest->spec.key == report.dataset_key;
  });
  DatasetEntry* const known = found != manifests.end() ? *found
                              : reads                  ? Adopt(from, report, now)
                                                       : nullptr;
  if (known == nullptr) {
    if (reads) Refuse(*manifests.front(), report.name);
    return;
  }
  DatasetEntry& dataset = *known;
  auto stream = dataset.streams.find(report.id);
  // Ids are hashes of name and incarnation. One id of two streams is a collision, or a node that
  // does not say the truth: nobody's ranks are taken for another's.
  if (stream != dataset.streams.end() && (stream->second.name() != report.name ||
                                          stream->second.incarnation() != report.incarnation)) {
    return Refuse(dataset, report.name);
  }
  if (stream == dataset.streams.end()) {
    if (!reads || !Supersede(dataset, report)) return;
    // Nodes may go on with what one has begun that this coordinator has not heard of yet.
    const Version generation = KnowsStreams(now) ? NextNumber() : Version{};
    dataset.passes.ForgetPasses(report.id);
    stream = dataset.streams.emplace(report.id, TrackedStream(report, generation, now)).first;
  }
  for (const RankReport& rank : report.ranks) {
    TrackedStream* const generation = GenerationOf(dataset, report, rank, member, now);
    if (generation != nullptr) generation->Observe(rank, member, now);
  }
}

// In which generation of the stream a rank reads that is known: one that is started again goes into
// the next, whichever ranks still read in this one. nullptr: there is no room for that.
TrackedStream* Coordinator::GenerationOf(DatasetEntry& dataset, const StreamReport& report,
                                         const RankReport& rank, MemberId member,
                                         MonotonicTime now) {
  TrackedStream& present = dataset.streams.at(report.id);
  const auto next = dataset.next_generations.find(report.id);
  if (next != dataset.next_generations.end()) {
    const bool of_its_world =
        rank.recipe.world == next->second.world() && rank.recipe.world != present.world();
    const bool is_there = next->second.Has(rank.rank, member);
    if (is_there || of_its_world || present.BeginsAnew(rank)) return &next->second;
  }
  if (!present.BeginsAnew(rank)) return &present;
  if (!HasRoomFor(dataset, report)) {
    Refuse(dataset, report.name);
    return nullptr;
  }
  return &dataset.next_generations.emplace(report.id, TrackedStream(report, NextNumber(), now))
              .first->second;
}

void Coordinator::Refuse(DatasetEntry& dataset, const std::string& stream) {
  const bool noted = std::ranges::find(dataset.refused, stream) != dataset.refused.end();
  if (!noted && dataset.refused.size() < kMaxRefusedNames) dataset.refused.push_back(stream);
}

// All generations of a stream take the room of the largest of them: the next takes the place of
// this one.
bool Coordinator::HasRoomFor(const DatasetEntry& dataset, const StreamReport& report) const {
  std::size_t own = WorldOf(report);
  std::size_t of_dataset = 0;
  std::size_t of_all = 0;
  bool is_known = false;
  for (const auto& [dataset_id, each] : datasets_) {
    for (const auto& [id, stream] : each.streams) {
      const auto next = each.next_generations.find(id);
      const std::size_t world = std::max<std::size_t>(
          stream.world(), next == each.next_generations.end() ? 0 : next->second.world());
      if (&each == &dataset && stream.name() == report.name) {
        own = std::max(own, world);
        is_known = true;
        continue;
      }
      of_all += world;
      if (&each == &dataset) of_dataset += world;
    }
  }
  const bool is_one_more = !is_known && dataset.streams.size() >= kMaxStreams;
  return !is_one_more && of_dataset + own <= kMaxRanksOfDataset && of_all + own <= kMaxRanks;
}

// Whether a stream that is new may begin: there is room, and no later incarnation of it is known,
// with whichever manifest. An earlier one ends.
bool Coordinator::Supersede(DatasetEntry& dataset, const StreamReport& report) {
  if (!HasRoomFor(dataset, report)) {
    Refuse(dataset, report.name);
    return false;
  }
  const std::vector<DatasetEntry*> manifests = ManifestsOf(dataset.spec.name);
  for (const DatasetEntry* const manifest : manifests) {
    const bool outdated = std::ranges::any_of(manifest->streams, [&](const auto& item) {
      return item.second.name() == report.name && item.second.incarnation() > report.incarnation;
    });
    if (outdated) return false;
  }
  for (DatasetEntry* const manifest : manifests) {
    for (auto* generations : {&manifest->streams, &manifest->next_generations}) {
      std::erase_if(*generations, [&](const auto& item) {
        return item.second.name() == report.name &&
               (manifest == &dataset || item.second.incarnation() < report.incarnation);
      });
    }
  }
  return true;
}

void Coordinator::EndStreams(DatasetEntry& dataset, MonotonicTime now) const {
  dataset.passes.KeepEndedPasses(dataset.streams, dataset.MeanSampleBytes(), now);
  for (auto* generations : {&dataset.streams, &dataset.next_generations}) {
    std::erase_if(*generations, [&](const auto& item) {
      const TrackedStream& stream = item.second;
      return stream.AllRanksEnded() || now - stream.heard() > options_.stream_silence;
    });
    for (auto& [id, stream] : *generations)
      stream.LoseRanks(now - options_.rank_silence);
  }
  BeginNextGenerations(dataset);
}

void Coordinator::BeginNextGenerations(DatasetEntry& dataset) {
  for (auto next = dataset.next_generations.begin(); next != dataset.next_generations.end();) {
    auto& [id, generation] = *next;
    const auto present = dataset.streams.find(id);
    const bool begins = present == dataset.streams.end() || present->second.NobodyReads() ||
                        generation.AllRanksKnown();
    if (!begins) {
      ++next;
      continue;
    }
    dataset.passes.ForgetPasses(id);
    dataset.streams.insert_or_assign(id, std::move(generation)).first->second.TakeOver();
    next = dataset.next_generations.erase(next);
  }
}

}  // namespace optcache::coordination
