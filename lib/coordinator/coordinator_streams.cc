// Says which manifest a stream reads and whether there is room for it, and which lists of ids are
// wanted.
//
// The idea: a stream that is not known begins if there is room for its ranks and no later
// incarnation of it is known; earlier ones end (Supersede). What follows from reports of its ranks
// its manifest's StreamRegistry knows.
//
// Invariants: the ranks of all streams together are bounded, where a stream counts with the larger
// of its generations (HasRoomFor). A report of an id that is another stream's, or that finds no
// room, changes no stream: only the names that the status shows, and, by Adopt, which manifests are
// kept.

#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"

namespace optcache::coordination {
namespace {

std::size_t WorldOf(const StreamReport& report) {
  std::size_t world = 0;
  for (const RankReport& rank : report.ranks)
    world = std::max<std::size_t>(world, rank.recipe.world);
  return world;
}

}  // namespace

Coordinator::DatasetEntry* Coordinator::DatasetOf(const StreamReport& report) {
  const std::vector<DatasetEntry*> manifests = ManifestsOf(report.dataset);
  const auto found = std::ranges::find_if(manifests, [&](const DatasetEntry* manifest) {
    return manifest->spec.key == report.dataset_key;
  });
  return found == manifests.end() ? nullptr : *found;
}

void Coordinator::TakeStream(const Report& from, const StreamReport& report, MemberId member,
                             MonotonicTime now) {
  DatasetEntry* const present = Present(report.dataset);
  if (present == nullptr) return;
  const bool reads =
      std::ranges::any_of(report.ranks, [](const RankReport& r) { return !r.ended; });
  DatasetEntry* known = DatasetOf(report);
  if (known == nullptr && reads) known = Adopt(from, report, now);
  if (known == nullptr) {
    if (reads) present->registry.Refuse(report.name);
    return;
  }
  StreamRegistry& registry = known->registry;
  // Ids are hashes of name and incarnation. One id of two streams is a collision, or a node that
  // does not say the truth: nobody's ranks are taken for another's.
  if (registry.IsIdOfAnother(report)) return registry.Refuse(report.name);
  if (!registry.streams().contains(report.id)) {
    if (!reads || !Supersede(*known, report)) return;
    // Nodes may go on with what one has begun that this coordinator has not heard of yet.
    const Version generation = KnowsStreams(now) ? NextNumber() : Version{};
    known->passes.ForgetPasses(report.id);
    registry.Begin(report, generation, now);
  }
  for (const RankReport& rank : report.ranks) {
    if (registry.NeedsNextGeneration(report.id, rank)) {
      if (!HasRoomFor(*known, report)) {
        registry.Refuse(report.name);
        continue;
      }
      registry.BeginNextGeneration(report, NextNumber(), now);
    }
    registry.Observe(report.id, rank, member, now);
  }
}

// All generations of a stream take the room of the largest of them: the next takes the place of
// this one.
bool Coordinator::HasRoomFor(const DatasetEntry& dataset, const StreamReport& report) const {
  const StreamRegistry::RankCount count = dataset.registry.CountRanks(report.name);
  const std::size_t of_dataset = count.others + std::max(WorldOf(report), count.named.value_or(0));
  std::size_t of_all = of_dataset;
  for (const auto& [id, other] : datasets_) {
    if (&other != &dataset) of_all += other.registry.ranks();
  }
  const bool is_one_more = !count.named && dataset.registry.streams().size() >= kMaxStreams;
  return !is_one_more && of_dataset <= kMaxRanksOfDataset && of_all <= kMaxRanks;
}

// Whether a stream that is new may begin: there is room, and no later incarnation of it is known,
// with whichever manifest. An earlier one ends.
bool Coordinator::Supersede(DatasetEntry& dataset, const StreamReport& report) {
  if (!HasRoomFor(dataset, report)) {
    dataset.registry.Refuse(report.name);
    return false;
  }
  const std::vector<DatasetEntry*> manifests = ManifestsOf(dataset.spec.name);
  const bool outdated = std::ranges::any_of(
      manifests, [&](const DatasetEntry* manifest) { return manifest->registry.HasLater(report); });
  if (outdated) return false;
  for (DatasetEntry* const manifest : manifests)
    manifest->registry.EndEarlier(report);
  dataset.registry.EndAll(report.name);
  return true;
}

void Coordinator::EndStreams(DatasetEntry& dataset, MonotonicTime now) const {
  dataset.passes.KeepEndedPasses(dataset.registry.streams(), dataset.MeanSampleBytes(), now);
  const StreamRegistry::Silence silence{.rank = options_.rank_silence,
                                        .stream = options_.stream_silence};
  for (const StreamId begun : dataset.registry.EndStreams(silence, now))
    dataset.passes.ForgetPasses(begun);
}

// Some at once, while there is room for more.
std::vector<std::string> Coordinator::TracesWanted(const Report& report, MemberId member) {
  std::vector<std::string> wanted;
  for (const StreamReport& stream : report.streams) {
    DatasetEntry* dataset = nullptr;
    for (const RankReport& rank : stream.ranks) {
      if (rank.traces.empty()) continue;
      if (dataset == nullptr) dataset = DatasetOf(stream);
      if (dataset == nullptr || dataset->spec.retention != Retention::kOptimal) break;
      for (const PassTrace& trace : rank.traces) {
        if (wanted.size() == kMaxTracesWanted) return wanted;
        if (!dataset->registry.WantsTrace(stream.id, member, trace) ||
            TraceBytesHeld() + kMaxTraceBytes > kMaxTraceBytesInAll) {
          continue;
        }
        wanted.push_back(trace.digest);
      }
    }
  }
  return wanted;
}

std::size_t Coordinator::TraceBytesHeld() const {
  std::size_t sum = 0;
  for (const auto& [id, dataset] : datasets_)
    sum += dataset.registry.traces().bytes_held();
  return sum;
}

Status Coordinator::OnTrace(std::string_view node, std::string_view digest, std::string bytes) {
  if (bytes.size() > kMaxTraceBytes || TraceBytesHeld() + bytes.size() > kMaxTraceBytesInAll) {
    return {Code::kResourceExhausted,
            "a list of " + std::to_string(bytes.size()) + " bytes: there is no room for it"};
  }
  const MemberEntry* const member = members_.Named(node);
  for (auto& [id, dataset] : datasets_) {
    if (member != nullptr && dataset.registry.LacksTrace(member->member.id, digest))
      return dataset.registry.TakeTrace(digest, std::move(bytes), dataset.spec.samples);
  }
  return {Code::kConflict, "the list " + std::string(digest) + " is not wanted"};
}

std::shared_ptr<const std::string> Coordinator::TraceBytes(std::string_view digest) const {
  for (const auto& [id, dataset] : datasets_) {
    if (auto bytes = dataset.registry.traces().Bytes(digest)) return bytes;
  }
  return nullptr;
}

// The plan in force without lists that no rank reads any more: their end asks for no other plan.
std::vector<StreamState> Coordinator::StillPlanned(const DatasetEntry& dataset) {
  std::vector<StreamState> streams = dataset.planned_streams;
  for (StreamState& stream : streams) {
    const auto tracked = dataset.registry.streams().find(stream.id);
    if (tracked == dataset.registry.streams().end() || stream.traces.empty()) continue;
    std::erase_if(stream.traces, [lowest = tracked->second.LowestPass()](const PassTrace& trace) {
      return trace.pass < lowest;
    });
  }
  return streams;
}

// Where the plan that is due decides from. What was read of a pass before its list was here has no
// decision yet: this plan makes one.
Cut Coordinator::CutOf(const DatasetEntry& dataset, const StreamState& stream) {
  const TrackedStream& tracked = dataset.registry.streams().at(stream.id);
  const auto before = std::ranges::find(dataset.planned_streams, stream.id, &StreamState::id);
  const bool is_planned =
      before != dataset.planned_streams.end() && before->generation == stream.generation;
  Cut cut = is_planned ? tracked.Frontier() : tracked.FirstCut();
  if (stream.traces.empty()) return cut;
  const bool has_decisions =
      is_planned &&
      std::ranges::find(before->traces, cut.pass, &PassTrace::pass) != before->traces.end();
  if (is_planned && !has_decisions && !tracked.IsPlannedIn(cut.pass)) cut.position = 0;
  return std::max(cut, Cut{.pass = stream.traces.front().pass, .position = 0});
}

}  // namespace optcache::coordination
