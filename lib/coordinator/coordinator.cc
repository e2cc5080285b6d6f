// Takes reports, fixes plans and publishes states. Streams, Datasets, lists of ids, revisions and
// the status have files of their own, coordinator_*.cc.
//
//   OnReport    ─► Membership, then each manifest's PassHistory, then its StreamRegistry
//   OnInventory ─► an answer of the open collection
//   OnTick      ─► silent members and ended streams go ─► PlaceDatasets, ShareGrants
//               ─► for each manifest: FollowTraces, Step: is a plan due? ─► collect ─► FixPlan
//               ─► Publish
//
// Invariants: a report changes what is known, and only a tick plans and publishes. FixPlan alone
// changes the inputs of a plan in force (`planned_`), all at once, so nodes see inputs that fit
// together; only names of revisions and trials that have ended change between (NameRevisions).
// Versions and numbers of requests only rise, above all that nodes have reported. A successor
// publishes nothing while it learns.

#include "coordinator/coordinator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "coordination/codec.h"

namespace optcache::coordination {
namespace {

// What a node may make this coordinator go on from. Counters never get there by themselves, and
// there is as much room again above.
constexpr std::uint64_t kMaxLearnedCounter = std::uint64_t{1} << 62U;
constexpr std::uint32_t kCounterBits = 32;  // of a request's number, below the term
constexpr std::size_t kBasesKept = 2;       // a node may still be fetching the one before
constexpr std::uint32_t kFullRate = 1000;
constexpr double kMostDrift = 0.05;  // of a pass; more asks for a plan

// Rates are rounded to per mille of the fastest; a stream not measured yet counts as the fastest.
void SetRates(const std::map<StreamId, TrackedStream>& tracked, std::vector<StreamState>& streams) {
  double fastest = 0;
  for (const StreamState& stream : streams) {
    fastest = std::max(fastest, tracked.at(stream.id).rate().value_or(0));
  }
  for (StreamState& stream : streams) {
    const double share = tracked.at(stream.id).rate().value_or(fastest) / fastest;
    stream.rate_permille =
        fastest > 0 && streams.size() > 1
            ? std::max(1U, static_cast<std::uint32_t>(std::lround(share * kFullRate)))
            : kFullRate;
  }
}

// Streams have read as much as by their rates in the plan, each of its own; how far apart are they,
// as a share of the shortest pass?
double DriftOf(const std::vector<StreamState>& planned, std::span<const double> planned_progress,
               const std::map<StreamId, TrackedStream>& tracked) {
  double least = std::numeric_limits<double>::max();
  double most = 0;
  Position shortest = std::numeric_limits<Position>::max();
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const TrackedStream& stream = tracked.at(planned[i].id);
    const double read = stream.progress() - planned_progress[i];
    const double at_full_rate = read * kFullRate / std::max(1U, planned[i].rate_permille);
    least = std::min(least, at_full_rate);
    most = std::max(most, at_full_rate);
    shortest = std::min(shortest, stream.pass_length());
  }
  return planned.size() < 2 ? 0 : (most - least) / std::max(1.0, static_cast<double>(shortest));
}

// The inputs without what does not ask for a new plan.
StreamState WithoutCutAndRate(StreamState stream) {
  stream.cut = {};
  stream.rate_permille = kFullRate;
  return stream;
}

// The version that a node knows, as far as it can be.
Version Known(const Report& report) {
  return {.term = report.applied.term,
          .counter = std::min(report.applied.counter, kMaxLearnedCounter)};
}

}  // namespace

Coordinator::Coordinator(const CoordinatorOptions& options)
    : options_(options), learning_(options.successor) {
  if (!learning_) state_.version.term = options.term;
}

Result<ReportAnswer> Coordinator::OnReport(const Report& report, MonotonicTime now) {
  if (learning_) {
    if (!first_report_) first_report_ = now;
    learned_ = std::max(learned_, Known(report));
  } else if (report.applied.term > options_.term) {
    return Error(Code::kConflict, "node " + report.node + " knows version " +
                                      FormatVersion(report.applied) +
                                      ", this coordinator has term " +
                                      std::to_string(options_.term) + ": it has been replaced");
  }
  ASSIGN_OR_RETURN(const Membership::Admission admission, members_.Admit(report, learning_));
  const MemberId member = admission.member;
  if (admission.gone) ForgetMember(*admission.gone);
  if (members_.Take(member, report, now)) placement_is_due_ = true;
  if (savings_.Take(report)) AddSavings(report.savings);
  TakeNumbers(report, member, now);
  if (!learning_ &&
      Known(report) > state_.version) {  // a coordinator that was started again goes on above
    state_.version = Known(report);
    nodes_are_ahead_ = true;
  }
  for (const StreamReport& stream : report.streams)
    TakeStream(report, stream, member, now);
  return ReportAnswer{.member = member,
                      .version = state_.version,
                      .traces_wanted = TracesWanted(report, member),
                      .shares = ShareRates(report, member, now)};
}

// What a member does not name any more it does not serve.
void Coordinator::TakeNumbers(const Report& report, MemberId member, MonotonicTime now) {
  std::set<const DatasetEntry*> named;
  for (const auto* list : {&report.datasets, &report.retiring}) {
    for (const DatasetReport& dataset : *list)
      named.insert(TakeNumbers(dataset, member, now));
  }
  for (auto& [id, dataset] : datasets_) {
    if (!named.contains(&dataset)) dataset.passes.Drop(member);
  }
}

// nullptr: that manifest is not wanted.
Coordinator::DatasetEntry* Coordinator::TakeNumbers(const DatasetReport& report, MemberId member,
                                                    MonotonicTime now) {
  DatasetId id{.name = report.name, .manifest_digest = report.manifest_digest};
  if (const DatasetEntry* const present = Present(report.name);
      id.manifest_digest.empty() && present != nullptr) {
    id.manifest_digest = present->spec.manifest_digest;
  }
  const auto dataset = datasets_.find(id);
  if (dataset == datasets_.end()) return nullptr;
  if (report.store.silent > 0) dataset->second.store_silent_at = now;
  const auto& granted = dataset->second.granted;
  const auto share = std::ranges::lower_bound(granted, member, {}, &MemberCapacity::member);
  const bool departs = share != granted.end() && share->member == member && share->departs;
  if (departs && report.samples == 0) placement_is_due_ = true;  // it has given all away
  dataset->second.passes.Take(member, report);
  return &dataset->second;
}

void Coordinator::AddSavings(const SavingsBatch& batch) {
  for (const auto& [name, saved] : batch.datasets) {
    if (DatasetEntry* const dataset = Present(name); dataset != nullptr)
      dataset->saved = Plus(dataset->saved, saved);
  }
}

// A successor's version begins above all that nodes know, also if their term is higher: then the
// Lease, which counts the terms, has been made again.
void Coordinator::Learn(MonotonicTime now) {
  if (!first_report_ || now - *first_report_ < 2 * options_.report_interval) return;
  learning_ = false;
  state_.version = std::max(learned_, Version{.term = options_.term, .counter = 0});
  options_.term = state_.version.term;
  nodes_are_ahead_ = true;
}

void Coordinator::ForgetMember(MemberId id) {
  for (auto& [name, dataset] : datasets_) {
    dataset.passes.MemberHasGone(id);
    dataset.registry.ForgetMember(id);
  }
  rates_.Forget(id);
  placement_is_due_ = true;
}

Status Coordinator::OnInventory(const Inventory& inventory) {
  const MemberEntry* const member = members_.Named(inventory.node);
  if (member == nullptr || member->incarnation != inventory.incarnation) {
    return {Code::kNotFound, "node " + inventory.node + " is no member"};
  }
  const std::vector<DatasetEntry*> manifests = ManifestsOf(inventory.dataset);
  const auto found = std::ranges::find_if(manifests, [&](const DatasetEntry* entry) {
    return entry->collection && entry->collection->request == inventory.request;
  });
  if (found == manifests.end()) {
    return {Code::kConflict, "inventory request " + std::to_string(inventory.request) + " of " +
                                 inventory.dataset + " is not open"};
  }
  DatasetEntry& dataset = **found;
  if (!inventory.ids.empty() && inventory.ids.back() >= dataset.spec.samples) {
    return {Code::kInvalidArgument, "held: sample " + std::to_string(inventory.ids.back()) +
                                        " of " + std::to_string(dataset.spec.samples)};
  }
  for (const RankPosition& position : inventory.positions)
    dataset.registry.NotePosition(position, member->member.id);
  dataset.collection->answers.insert_or_assign(member->member.id, inventory.ids);
  return OkStatus();
}

void Coordinator::OnTick(MonotonicTime now) {
  if (learning_) return Learn(now);  // what it has learned is for its host first
  for (const MemberId gone : members_.RemoveSilent(options_.member_silence, now))
    ForgetMember(gone);
  for (auto& [id, dataset] : datasets_)
    EndStreams(dataset, now);
  EndRetiring(now);
  PlaceDatasets(now);
  ShareGrants();
  for (auto& [id, dataset] : datasets_) {
    dataset.registry.FollowTraces(dataset.planned_streams, dataset.spec.samples);
    Step(dataset, now);
    dataset.passes.FollowRecent(now);
  }
  Publish();
}

void Coordinator::OnPause(Duration pause) {
  members_.Forgive(pause);
  for (auto& [id, dataset] : datasets_)
    dataset.registry.Forgive(pause);
}

bool Coordinator::IsPlanned(const DatasetEntry& dataset, StreamId id) {
  return std::ranges::any_of(dataset.planned_streams,
                             [id](const StreamState& stream) { return stream.id == id; });
}

Coordinator::PlanInputs Coordinator::InputsNow(const DatasetEntry& dataset) const {
  PlanInputs inputs{
      .assignment = {}, .trials = {}, .capacities = dataset.capacities, .streams = {}};
  TakeRevisions(dataset, inputs);
  SetRates(dataset.registry.streams(), inputs.streams);
  return inputs;
}

// Whether a stream that is in no plan yet has just started, so that others may be about to.
bool Coordinator::IsGathering(const DatasetEntry& dataset, MonotonicTime now) const {
  return std::ranges::any_of(dataset.registry.streams(), [&](const auto& item) {
    const auto& [id, stream] = item;
    return stream.AllRanksKnown() && !IsPlanned(dataset, id) &&
           now - stream.started_at() < options_.stream_gathering;
  });
}

// Who has given away all that it had is missing from the next plan, but is no reason for one.
bool Coordinator::SharesHaveChanged(const DatasetEntry& dataset,
                                    const std::vector<MemberCapacity>& now) {
  std::vector<MemberCapacity> planned = dataset.planned_capacities;
  std::erase_if(planned, [&](const MemberCapacity& share) {
    return share.departs &&
           !std::ranges::binary_search(now, share.member, {}, &MemberCapacity::member);
  });
  return planned != now;
}

bool Coordinator::PlanIsDue(const DatasetEntry& dataset, const PlanInputs& inputs,
                            MonotonicTime now) const {
  if (inputs.streams.empty() && dataset.planned_streams.empty()) return false;
  if (IsGathering(dataset, now)) return false;
  if (AsksForTrial(dataset, inputs) || !IsAssignedAs(dataset, inputs) ||
      SharesHaveChanged(dataset, inputs.capacities) ||
      !std::ranges::equal(inputs.streams, StillPlanned(dataset), {}, WithoutCutAndRate,
                          WithoutCutAndRate)) {
    return true;
  }
  return now - dataset.planned_at >= options_.drift_interval &&
         DriftOf(dataset.planned_streams, dataset.planned_progress, dataset.registry.streams()) >
             kMostDrift;
}

void Coordinator::Step(DatasetEntry& dataset, MonotonicTime now) {
  PlanInputs inputs = InputsNow(dataset);
  if (dataset.planned_streams.empty()) {  // there is no plan to disturb
    NameRevisions(dataset, inputs);
    dataset.planned_capacities = inputs.capacities;
    if (inputs.streams.empty()) {
      dataset.planned_trials = std::move(inputs.trials);
      return;
    }
  } else if (IsAssignedAs(dataset, inputs)) {
    NameRevisions(dataset, inputs);
  }
  if (!dataset.collection) {
    if (!PlanIsDue(dataset, inputs, now)) return;
    dataset.collection = {.request = NextRequest(), .deadline = now + options_.inventory_wait};
  }
  const bool nothing_to_plan = inputs.streams.empty();
  if (nothing_to_plan || now >= dataset.collection->deadline || AllHaveAnswered(dataset)) {
    FixPlan(dataset, std::move(inputs), now);
  }
}

// Greater than all that this coordinator and earlier ones have given, as versions of states are.
Version Coordinator::NextNumber() {
  last_number_ = std::max(last_number_, state_.version.counter) + 1;
  return {.term = options_.term, .counter = last_number_};
}

RequestNumber Coordinator::NextRequest() {
  const Version number = NextNumber();
  return (RequestNumber{number.term} << kCounterBits) + number.counter;
}

bool Coordinator::AllHaveAnswered(const DatasetEntry& dataset) {
  return std::ranges::all_of(dataset.capacities, [&](const MemberCapacity& capacity) {
    return dataset.collection->answers.contains(capacity.member);
  });
}

void Coordinator::FixPlan(DatasetEntry& dataset, PlanInputs inputs, MonotonicTime now) {
  for (StreamState& stream : inputs.streams) {
    stream.cut = CutOf(dataset, stream);
  }
  std::vector<Holdings> holdings;
  for (auto& [member, ids] : dataset.collection->answers) {
    if (members_.entries().contains(member))
      holdings.push_back({.member = member, .ids = std::move(ids)});
  }
  SetBase(dataset, MakePlanBase(std::move(holdings)));
  dataset.planned = {.term = options_.term, .counter = state_.version.counter + 1};
  dataset.planned_at = now;
  dataset.planned_assignment = std::move(inputs.assignment);
  dataset.planned_trials = std::move(inputs.trials);
  dataset.planned_capacities = std::move(inputs.capacities);
  dataset.planned_streams = std::move(inputs.streams);
  dataset.planned_progress.clear();
  for (const StreamState& stream : dataset.planned_streams)
    dataset.planned_progress.push_back(dataset.registry.streams().at(stream.id).progress());
  dataset.collection.reset();
}

void Coordinator::SetBase(DatasetEntry& dataset, const PlanBase& base) {
  dataset.base_digest.clear();
  if (base.members.empty()) return;
  std::string bytes = EncodePlanBase(base);
  dataset.base_digest = DigestHex(bytes);
  std::erase_if(dataset.bases,
                [&](const NamedBytes& old) { return old.digest == dataset.base_digest; });
  if (dataset.bases.size() >= kBasesKept) dataset.bases.erase(dataset.bases.begin());
  dataset.bases.push_back({.digest = dataset.base_digest,
                           .bytes = std::make_shared<const std::string>(std::move(bytes))});
}

void Coordinator::Publish() {
  DesiredState next{.version = state_.version};
  for (const auto& [id, entry] : members_.entries())
    next.members.push_back(entry.member);
  for (const auto& [id, dataset] : datasets_)
    (dataset.retiring_since ? next.retiring : next.datasets).push_back(Describe(dataset));
  if (next == state_ && !nodes_are_ahead_) return;
  nodes_are_ahead_ = false;
  ++next.version.counter;
  state_ = std::move(next);
}

// The plan as it was fixed, and beside it the streams that are in no plan yet.
DatasetState Coordinator::Describe(const DatasetEntry& dataset) const {
  DatasetState state{.name = dataset.spec.name,
                     .manifest_digest = dataset.spec.manifest_digest,
                     .key = dataset.spec.key,
                     .revision = dataset.planned_assignment.own.name,
                     .retention = dataset.planned_assignment.own.retention,
                     .objective = dataset.planned_assignment.own.objective,
                     .update = dataset.planned_assignment.update,
                     .trials = dataset.planned_trials,
                     .planned = dataset.planned,
                     .base_digest = dataset.base_digest,
                     .capacities = dataset.planned_capacities,
                     .streams = dataset.planned_streams,
                     .namespaces = dataset.spec.namespaces,
                     .manifest_members = dataset.placement.members(),
                     .manifest_holders = dataset.placement.holders()};
  if (dataset.collection) state.inventory_wanted = dataset.collection->request;
  for (StreamState& planned : state.streams) {
    const auto stream = dataset.registry.streams().find(planned.id);
    if (stream != dataset.registry.streams().end())
      planned.generation = stream->second.generation();
  }
  for (const auto& [id, stream] : dataset.registry.streams()) {
    if (IsPlanned(dataset, id)) continue;
    StreamState waiting = stream.State();
    waiting.complete = false;
    state.streams.push_back(std::move(waiting));
  }
  std::ranges::sort(state.streams, {}, &StreamState::id);
  return state;
}

std::shared_ptr<const std::string> Coordinator::BaseBytes(std::string_view digest) const {
  for (const auto& [name, dataset] : datasets_) {
    for (const NamedBytes& base : dataset.bases) {
      if (base.digest == digest) return base.bytes;
    }
  }
  return nullptr;
}

}  // namespace optcache::coordination
