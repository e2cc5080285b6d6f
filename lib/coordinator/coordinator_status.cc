// Describes the coordinator for people, from its fields at each call, and stores nothing.
//
// The idea: the numbers of a Dataset are those of its PassHistory. Digests of plans are compared
// only among nodes that have applied the planned version and that say which plan they mean; those
// that differ from the most frequent digest are named, or all of them if there is a tie. Notes are
// sentences for people, and the last step: they read the finished numbers.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/some_of.h"
#include "coordination/stream_recipe.h"
#include "coordinator/coordinator.h"
#include "sampler/recipe_text.h"

namespace optcache::coordination {
namespace {

std::uint64_t EpochOfPass(const StreamState& stream, PassNumber pass) {
  const PassNumber passes = pass - std::min(pass, stream.first_pass);
  return stream.first_epoch + std::uint64_t{stream.epoch_step} * passes;
}

StreamStatus StatusOf(const TrackedStream& stream, const StreamState& state,
                      const std::vector<PassTrace>& traces, bool planned) {
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
          .order_known = state.recipe.known || by_lists || stream.HasReadByLists(),
          .recipe = state.recipe.known && recipe ? sampler::FormatRecipe(*recipe) : "",
          .epoch = EpochOfPass(state, stream.Frontier().pass),
          .epoch_step = state.epoch_step,
          .repeats = by_lists || (recipe && recipe->replacement),
          .rate = stream.rate().value_or(0),
          .conflict = stream.conflict()};
}

// Names of nodes by digest, for each revision and pass: members plan passes at different times, and
// some another revision.
using NodesByDigest = std::map<std::string_view, std::vector<std::string>>;
using PlanDigests = std::map<std::pair<std::string_view, std::string_view>, NodesByDigest>;

// Of those that plan the same, all who do not have the digest that most have.
std::vector<std::string> WhoDiffers(const PlanDigests& plans) {
  std::vector<std::string> odd;
  for (const auto& [plan, digests] : plans) {
    std::size_t most = 0;
    bool is_tied = false;
    for (const auto& [digest, nodes] : digests) {
      is_tied = nodes.size() == most || (is_tied && nodes.size() < most);
      most = std::max(most, nodes.size());
    }
    for (const auto& [digest, nodes] : digests) {
      if (is_tied || nodes.size() < most) odd.insert(odd.end(), nodes.begin(), nodes.end());
    }
  }
  std::ranges::sort(odd);
  return odd;
}

std::string Percent(ByteCount part, ByteCount whole) {
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  return std::to_string(std::lround(percent)) + " %";
}

// The longest of these that `seconds` has reached; "" if none.
std::string_view LongerThan(double seconds) {
  struct Step {
    double seconds;
    std::string_view text;
  };
  static constexpr std::array<Step, 12> kSteps = {{{10, "10 seconds"},
                                                   {30, "30 seconds"},
                                                   {60, "1 minute"},
                                                   {120, "2 minutes"},
                                                   {300, "5 minutes"},
                                                   {900, "15 minutes"},
                                                   {1800, "30 minutes"},
                                                   {3600, "1 hour"},
                                                   {3 * 3600, "3 hours"},
                                                   {12 * 3600, "12 hours"},
                                                   {24 * 3600, "1 day"},
                                                   {7 * 24 * 3600, "7 days"}}};
  std::string_view longest;
  for (const Step& step : kSteps) {
    if (seconds >= step.seconds) longest = step.text;
  }
  return longest;
}

}  // namespace

std::string DescribeSilence(const StoreStatus& store) {
  const std::uint64_t all = store.silent + store.answering;
  std::string text = "it answers nothing to " + std::to_string(store.silent) + " of " +
                     std::to_string(all) + (all == 1 ? " sidecar" : " sidecars") + ", on " +
                     std::to_string(store.members_silent) +
                     (store.members_silent == 1 ? " machine" : " machines");
  if (const std::string_view time = LongerThan(store.silent_seconds); !time.empty())
    text += ", for more than " + std::string(time);
  if (!store.cause.empty()) text += " (last: " + store.cause + ")";
  return text;
}

std::string DescribeChange(std::string_view object) {
  return std::string(object) +
         " is not the object that was indexed, and reads of it fail. "
         "Other objects may have changed, too";
}

std::optional<std::string> OversizeNote(ByteCount capacity, ByteCount dataset_bytes) {
  if (capacity <= dataset_bytes) return std::nullopt;
  return "the capacity (" + FormatBytes(capacity) + ") is larger than the dataset (" +
         FormatBytes(dataset_bytes) + "): all of it is kept";
}

ClusterStatus Coordinator::Snapshot(MonotonicTime now) const {
  ClusterStatus status{.version = state_.version};
  for (const auto& [id, entry] : members_.entries()) {
    MemberStatus& member = status.members.emplace_back();
    member = {.id = id,
              .incarnation = entry.incarnation,
              .name = entry.member.name,
              .address = entry.member.address,
              .metrics = entry.metrics,
              .capacity = entry.member.capacity,
              .disk = entry.member.disk,
              .silent_seconds = ToSeconds(now - entry.heard),
              .applied = entry.applied};
    for (const auto& [dataset_id, dataset] : datasets_) {
      const auto said = dataset.passes.reports().find(id);
      if (said == dataset.passes.reports().end()) continue;
      member.used += said->second.used_bytes;
      member.disk_used += said->second.disk_used_bytes;
    }
  }
  for (const auto& [id, dataset] : datasets_)
    (dataset.retiring_since ? status.retiring : status.datasets).push_back(StatusOf(dataset, now));
  return status;
}

DatasetStatus Coordinator::StatusOf(const DatasetEntry& dataset, MonotonicTime now) const {
  const DatasetSpec& spec = dataset.spec;
  DatasetStatus status{.name = spec.name,
                       .manifest_digest = spec.manifest_digest,
                       .retention = dataset.planned_assignment.own.retention,
                       .objective = dataset.planned_assignment.own.objective,
                       .total_samples = spec.samples,
                       .total_bytes = spec.bytes,
                       .planned = dataset.planned,
                       .replanning = dataset.collection.has_value(),
                       .manifest_holders = dataset.placement.holders_total()};
  if (const auto missed = dataset.placement.missed_since())
    status.manifest_missed_seconds = ToSeconds(now - *missed);
  for (const MemberCapacity& share : dataset.capacities)
    status.capacity += share.bytes;
  PlanDigests digests;
  for (const auto& [member, counted] : dataset.passes.reports()) {
    const MemberEntry& entry = members_.entries().at(member);
    status.nodes.push_back({.name = entry.member.name,
                            .used = counted.used_bytes,
                            .revision = counted.revision,
                            .derived = counted.derived,
                            .trials = counted.trials});
    if (entry.applied < dataset.planned || counted.plan.empty()) continue;
    status.plan_digest = counted.plan_digest;
    digests[{counted.revision, counted.plan}][counted.plan_digest].push_back(entry.member.name);
  }
  status.nodes_that_differ = WhoDiffers(digests);
  status.sum = dataset.passes.Sum();
  status.sum.name = spec.name;
  status.sum.manifest_digest = spec.manifest_digest;
  status.saved = dataset.saved;
  std::set<MemberId> readers;
  for (const auto& [id, stream] : dataset.registry.streams()) {
    const StreamState announced = stream.State();
    status.streams.push_back(optcache::coordination::StatusOf(
        stream, announced, dataset.registry.traces().PassesOf(id), IsPlanned(dataset, id)));
    if (stream.AnnouncesOrder()) {
      status.streams.back().differs = DifferenceFrom(spec.jobs, announced);
    } else if (announced.conflict.empty() && RecipeOf(spec.jobs, announced) != nullptr) {
      status.streams.back().order_known = true;  // from its CachePlan
    }
    readers.insert(announced.node_of_rank.begin(), announced.node_of_rank.end());
  }
  for (const MemberId member : readers) {
    if (const auto found = members_.entries().find(member); found != members_.entries().end())
      status.readers.push_back(found->second.member.name);
  }
  std::ranges::sort(status.readers);
  AddRevisions(dataset, status);
  status.passes = dataset.passes.Passes(dataset.registry.streams());
  status.ratios = dataset.passes.Ratios(status.passes, status.sum, dataset.MeanSampleBytes());
  AddStore(dataset, now, status);
  if (!dataset.retiring_since) AddNotes(dataset, status);
  return status;
}

// The cause is that of whom it is silent to for the longest.
void Coordinator::AddStore(const DatasetEntry& dataset, MonotonicTime now,
                           DatasetStatus& status) const {
  StoreStatus& store = status.store;
  if (dataset.store_silent_at) store.quiet_seconds = ToSeconds(now - *dataset.store_silent_at);
  for (const auto& [member, counted] : dataset.passes.reports()) {
    const StoreReport& report = counted.store;
    store.answering += report.answering;
    store.silent += report.silent;
    if (!report.changed.empty()) store.changed = report.changed;
    if (report.silent == 0) continue;
    ++store.members_silent;
    const double silent = ToSeconds(std::chrono::milliseconds(report.silent_ms)) +
                          ToSeconds(now - members_.entries().at(member).heard);
    if (store.members_silent > 1 && silent <= store.silent_seconds) continue;
    store.silent_seconds = silent;
    store.cause = report.cause;
  }
}

void Coordinator::AddNotes(const DatasetEntry& dataset, DatasetStatus& status) const {
  const DatasetSpec& spec = dataset.spec;
  if (auto note = OversizeNote(spec.capacity, spec.bytes)) status.notes.push_back(*std::move(note));
  if (!spec.note.empty()) status.notes.push_back(spec.note);
  if (status.store.silent > 0)
    status.notes.push_back("the store is silent: " + DescribeSilence(status.store) +
                           "; reads wait for it");
  if (!status.store.changed.empty()) status.notes.push_back(DescribeChange(status.store.changed));
  // Rounding down takes less than a byte a member.
  ByteCount granted = 0;
  for (const MemberCapacity& share : dataset.granted)
    granted += share.bytes;
  if (!members_.entries().empty() && granted + members_.entries().size() < spec.capacity) {
    const std::string offer = spec.with_disk > 0 ? "memory and disks give " : "memory gives ";
    status.notes.push_back("the members' " + offer + Percent(granted, spec.capacity) +
                           " of the capacity asked for (" + FormatBytes(spec.capacity) + ")");
  }
  if (!status.nodes_that_differ.empty()) {
    status.notes.push_back("these nodes have derived other plans than the rest from the same " +
                           ("inputs: " + SomeOf(status.nodes_that_differ)));
  }
  NoteRetiring(dataset, status);
  for (const std::string& name : dataset.registry.refused()) {
    status.notes.push_back("stream " + name + " was refused: its manifest is not kept any more, " +
                           "it has the id of another stream, or there are too many streams or " +
                           "ranks");
  }
}

void Coordinator::NoteRetiring(const DatasetEntry& dataset, DatasetStatus& status) const {
  for (const auto& [id, other] : datasets_) {
    if (id.name != dataset.spec.name || !other.retiring_since || other.registry.streams().empty())
      continue;
    ByteCount share = 0;
    for (const MemberCapacity& capacity : other.capacities)
      share += capacity.bytes;
    const bool one = other.registry.streams().size() == 1;
    status.notes.push_back(
        (one ? "1 stream still reads"
             : std::to_string(other.registry.streams().size()) + " streams still read") +
        " an earlier manifest (" + id.manifest_digest.substr(0, 12) + "), which has " +
        FormatBytes(share) + " of the capacity until then");
  }
}

}  // namespace optcache::coordination
