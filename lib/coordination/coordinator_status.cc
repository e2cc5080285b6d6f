#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "coordination/coordinator.h"
#include "coordination/stream_recipe.h"

namespace optcache::coordination {
namespace {

StreamStatus StatusOf(const TrackedStream& stream, const std::vector<PassTrace>& traces,
                      bool planned) {
  const StreamState state = stream.State();
  const auto recipe = SamplerRecipe(state.recipe);
  const bool by_lists = stream.TracesHold() && !traces.empty();
  return {.name = stream.name(),
          .incarnation = stream.incarnation(),
          .pass = stream.Frontier().pass,
          .position = stream.Frontier().position,
          .length = state.stops_at != 0 ? state.stops_at
                    : by_lists          ? traces.front().length
                                        : PassLength(state.recipe),
          .world = state.recipe.world,
          .ranks = stream.ranks_attached(),
          .ranks_lost = stream.ranks_lost(),
          .planned = planned,
          .order_known = state.recipe.known || by_lists,
          .repeats = by_lists || (recipe && recipe->replacement),
          .rate = stream.rate().value_or(0),
          .conflict = stream.conflict()};
}

std::string Percent(ByteCount part, ByteCount whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return std::to_string(std::lround(percent)) + " %";
}

// Sums of the members' counters; the predicted ratio is weighted by requests, or plain before any.
class Sum {
 public:
  explicit Sum(DatasetReport departed) : sum_(std::move(departed)) {}

  void Add(const DatasetReport& report) {
    sum_.used_bytes += report.used_bytes;
    sum_.samples += report.samples;
    sum_.hits += report.hits;
    sum_.peer_hits += report.peer_hits;
    sum_.misses += report.misses;
    sum_.miss_bytes += report.miss_bytes;
    sum_.moves += report.moves;
    sum_.moved_bytes += report.moved_bytes;
    sum_.planned_misses += report.planned_misses;
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

std::optional<double> ObservedHitRatio(const DatasetReport& sum) {
  const std::uint64_t hits = sum.hits + sum.peer_hits;
  if (hits + sum.misses == 0) return std::nullopt;
  return static_cast<double>(hits) / static_cast<double>(hits + sum.misses);
}

std::optional<std::string> OversizeNote(ByteCount capacity, ByteCount dataset_bytes) {
  if (capacity <= dataset_bytes) return std::nullopt;
  return "the capacity (" + FormatBytes(capacity) + ") is larger than the dataset (" +
         FormatBytes(dataset_bytes) + "): all of it is kept";
}

ClusterStatus Coordinator::Snapshot(MonotonicTime now) const {
  ClusterStatus status{.version = state_.version};
  for (const auto& [id, entry] : members_) {
    MemberStatus& member = status.members.emplace_back();
    member = {.id = id,
              .name = entry.member.name,
              .address = entry.member.address,
              .metrics = entry.metrics,
              .capacity = entry.member.capacity,
              .silent_seconds = std::chrono::duration<double>(now - entry.heard).count(),
              .applied = entry.applied};
    for (const auto& [dataset_id, dataset] : entry.datasets)
      member.used += dataset.used_bytes;
  }
  for (const auto& [id, dataset] : datasets_)
    (dataset.retiring_since ? status.retiring : status.datasets).push_back(StatusOf(dataset, now));
  return status;
}

DatasetStatus Coordinator::StatusOf(const DatasetEntry& dataset, MonotonicTime now) const {
  const DatasetSpec& spec = dataset.spec;
  DatasetStatus status{.name = spec.name,
                       .manifest_digest = spec.manifest_digest,
                       .retention = spec.retention,
                       .total_samples = spec.samples,
                       .total_bytes = spec.bytes,
                       .planned = dataset.planned,
                       .replanning = dataset.collection.has_value(),
                       .manifest_holders = dataset.manifest_holders_total};
  if (dataset.manifest_missed) {
    status.manifest_missed_seconds =
        std::chrono::duration<double>(now - *dataset.manifest_missed).count();
  }
  for (const MemberCapacity& share : dataset.capacities)
    status.capacity += share.bytes;
  Sum sum(dataset.departed);
  std::map<std::string_view, std::string_view> digests;  // members plan passes at different times
  for (const auto& [id, entry] : members_) {
    const auto report =
        entry.datasets.find({.name = spec.name, .manifest_digest = spec.manifest_digest});
    if (report == entry.datasets.end()) continue;
    sum.Add(report->second);
    status.nodes.push_back({.name = entry.member.name, .used = report->second.used_bytes});
    const DatasetReport& counted = report->second;
    if (entry.applied < dataset.planned || counted.plan.empty()) continue;
    status.plan_digest = counted.plan_digest;
    const auto [first, is_first] = digests.try_emplace(counted.plan, counted.plan_digest);
    if (first->second != counted.plan_digest) status.digests_agree = false;
  }
  status.sum = sum.Finish();
  status.sum.name = spec.name;
  status.sum.manifest_digest = spec.manifest_digest;
  std::set<std::string> readers;
  for (const auto& [id, stream] : dataset.streams) {
    status.streams.push_back(optcache::coordination::StatusOf(stream, dataset.traces.PassesOf(id),
                                                              IsPlanned(dataset, id)));
    for (const MemberId member : stream.State().node_of_rank) {
      if (const auto found = members_.find(member); found != members_.end())
        readers.insert(found->second.member.name);
    }
  }
  status.readers.assign(readers.begin(), readers.end());
  if (!dataset.retiring_since) AddNotes(dataset, status);
  return status;
}

void Coordinator::AddNotes(const DatasetEntry& dataset, DatasetStatus& status) const {
  const DatasetSpec& spec = dataset.spec;
  if (auto note = OversizeNote(spec.capacity, spec.bytes)) status.notes.push_back(*std::move(note));
  if (!spec.note.empty()) status.notes.push_back(spec.note);
  // Rounding down takes less than a byte a member.
  ByteCount granted = 0;
  for (const MemberCapacity& share : dataset.granted)
    granted += share.bytes;
  if (!members_.empty() && granted + members_.size() < spec.capacity) {
    status.notes.push_back("the members' memory gives " + Percent(granted, spec.capacity) +
                           " of the capacity asked for (" + FormatBytes(spec.capacity) + ")");
  }
  if (!status.digests_agree) {
    status.notes.emplace_back("nodes have derived different plans from the same inputs");
  }
  NoteRetiring(dataset, status);
  for (const std::string& name : dataset.refused) {
    status.notes.push_back("stream " + name + " was refused: its manifest is not kept any more, " +
                           "it has the id of another stream, or there are too many streams or " +
                           "ranks");
  }
}

void Coordinator::NoteRetiring(const DatasetEntry& dataset, DatasetStatus& status) const {
  for (const auto& [id, other] : datasets_) {
    if (id.name != dataset.spec.name || !other.retiring_since || other.streams.empty()) continue;
    ByteCount share = 0;
    for (const MemberCapacity& capacity : other.capacities)
      share += capacity.bytes;
    const bool one = other.streams.size() == 1;
    status.notes.push_back((one ? "1 stream still reads"
                                : std::to_string(other.streams.size()) + " streams still read") +
                           " an earlier manifest (" + id.manifest_digest.substr(0, 12) +
                           "), which has " + FormatBytes(share) + " of the capacity until then");
  }
}

}  // namespace optcache::coordination
