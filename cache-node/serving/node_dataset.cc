// Follows the desired states of one dataset: what is in force here, what is being derived, and what
// goes.
//
// Members and budget of a state count at once; a plan takes time. TakePlanInputs numbers it,
// StartPlan hands it to the deriver when its base is there, and OnDerived takes it over with its
// first window. Until then the revision before counts, and so do its plans, except for streams
// whose order is another now. A window of another number is ignored, so a late result changes
// nothing. OnDerived carries out a window in this order: evictions, departures, passes, then the
// reads that were made before the plan covered them. Evictions of later windows wait until all
// ranks on this node have reached the window's first pass. FollowStreams tells the deriver how far
// to plan, and forgets passes that are over.

#include "cache-node/serving/node_dataset.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/log.h"
#include "coordination/codec.h"

namespace optcache::node {
namespace {

coordination::MemberCapacity ShareOf(const std::vector<coordination::MemberCapacity>& capacities,
                                     wire::MemberId member) {
  const auto found = std::ranges::find(capacities, member, &coordination::MemberCapacity::member);
  return found == capacities.end() ? coordination::MemberCapacity{} : *found;
}

ByteCount CapacityOf(const std::vector<coordination::MemberCapacity>& capacities,
                     wire::MemberId member) {
  return ShareOf(capacities, member).bytes;
}

// What a member that is not listed holds stays for those who still find it there, and so does what
// one gives away.
bool IsPlaced(const coordination::DatasetState& state, wire::MemberId self) {
  const auto share =
      std::ranges::find(state.capacities, self, &coordination::MemberCapacity::member);
  return share != state.capacities.end() && !share->departs;
}

// Those that are listed, and home to no sample.
std::vector<wire::MemberId> OthersIn(const coordination::DatasetState& state,
                                     const std::vector<wire::MemberId>& homes) {
  std::vector<wire::MemberId> others;
  for (const coordination::MemberCapacity& share : state.capacities) {
    if (std::ranges::find(homes, share.member) == homes.end()) others.push_back(share.member);
  }
  return others;
}

constexpr std::size_t kMaxWhyBytes = 500;
// Time for what a plan has no room for here any more to reach others.
constexpr Duration kDepartWithin = std::chrono::minutes(1);
// What is placed here no more waits this long for the plan that says where it goes.
constexpr Duration kPlanWithin = std::chrono::seconds(30);
// What has come meanwhile, as by a push that was under way, goes then.
constexpr Duration kGiveAwayAgain = std::chrono::seconds(10);

// A coordinator that has begun knows of no earlier generations. A cut that goes back is that of the
// stream's next generation, too; one that is not complete has no cut yet: its ranks are gathered.
bool GoesOn(StreamId id, const NodeDataset::StreamGeneration& before,
            const std::vector<coordination::StreamState>& streams) {
  return std::ranges::any_of(streams, [&](const coordination::StreamState& now) {
    return now.id == id && now.generation <= before.version &&
           (!now.complete || now.cut >= before.cut);
  });
}

DatasetConfig ToConfig(const coordination::DatasetState& state, Retention retention,
                       wire::MemberId self, plan::Sizes sizes) {
  const coordination::MemberCapacity share = ShareOf(state.capacities, self);
  return {.key = state.key,
          .self = self,
          .retention = retention,
          .capacity = share.bytes,
          .disk = share.disk,
          .reserve = TransitReserve(share.bytes - share.disk, sizes),
          .sizes = std::move(sizes)};
}

}  // namespace

NodeDataset::NodeDataset(const coordination::DatasetState& state, wire::MemberId self,
                         plan::Sizes sizes, std::vector<dataset::Digest> digests, Effects& effects,
                         PlanDeriver::Deliver deliver, std::shared_ptr<DeriverEnds> ends)
    : state_({.name = state.name, .manifest_digest = state.manifest_digest, .key = state.key}),
      self_(self),
      sizes_(sizes),
      digests_(std::move(digests)),
      following_(Follow(state, self)),
      cache_(ToConfig(state, following_.retention, self, std::move(sizes)), {}, book_, effects),
      ends_(std::move(ends)),
      deriver_(std::make_unique<PlanDeriver>(std::move(deliver))) {}

NodeDataset::~NodeDataset() {
  ends_->Take(std::move(deriver_));
}

bool NodeDataset::Apply(const coordination::DatasetState& state,
                        const std::vector<wire::MemberId>& members, MonotonicTime now) {
  TakeGenerations(state.streams);
  Following next = Follow(state, self_);
  const bool stays = StaysWithPlan(state, next);
  const bool is_other = state.planned != state_.planned || !next.IsLike(following_);
  state_ = state;
  if (!stays) {
    if (is_other) TakePlanInputs(next);
    following_ = std::move(next);
    if (!awaits_plan_) TakeInForce();
  }
  const DatasetConfig config = ToConfig(state, following_.retention, self_, sizes_);
  cache_.SetBudget(config.retention, config.capacity, config.reserve, config.disk,
                   ShareOf(state.capacities, self_).departs);
  if (IsPlaced(state, self_) && config.disk == 0 && !ending_) cache_.LeaveDisk();
  if (!following_.HasPlan()) cache_.retention_manager().KeepSpares();
  if (cache_.SetMembers(members, OthersIn(state, members)))
    give_away_at_ = now + (awaits_plan_ ? kPlanWithin : Duration());
  if (IsPlaced(state, self_) || ending_) give_away_at_.reset();
  GiveAwayIfDue(now);
  return TakeTrials() || (awaits_plan_ && !plan_started_);
}

// A coordinator that has begun knows of no plan: until it has made one, that of its predecessor
// goes on, unless no stream of it is there any more.
bool NodeDataset::StaysWithPlan(const coordination::DatasetState& state,
                                const Following& next) const {
  const bool is_derived = !awaits_plan_ || plan_started_;
  if (state.planned != coordination::Version{} || next.retention != Retention::kOptimal ||
      !following_.HasPlan() || !is_derived) {
    return false;
  }
  return std::ranges::any_of(following_.streams, [&state](const auto& stream) {
    return GoesOn(stream.id, {.version = {}, .cut = stream.cut}, state.streams);
  });
}

// What was counted and planned of an earlier generation is forgotten.
void NodeDataset::TakeGenerations(const std::vector<coordination::StreamState>& streams) {
  std::set<StreamId> ended;
  std::erase_if(generations_, [&](const auto& known) {
    const auto& [id, generation] = known;
    if (GoesOn(id, generation, streams)) return false;
    ended.insert(id);
    book_.ForgetStream(id);
    cache_.uses().ForgetStream(id);
    cache_.retention_manager().OnStreamEnded(id);
    cache_.passes().ForgetStream(id);
    seen_.erase(id);
    reached_.erase(id);
    return true;
  });
  for (const coordination::StreamState& stream : streams) {
    StreamGeneration& generation = generations_[stream.id];
    generation.version = std::max(generation.version, stream.generation);
    // The plan in force may still be of the generation that has ended just now.
    if (stream.complete && !ended.contains(stream.id)) generation.cut = stream.cut;
  }
}

// What is followed is derived, or need not be.
void NodeDataset::TakeInForce() {
  revision_ = following_.revision;
  derived_ = state_.planned;
}

// What came of others is forgotten. True when there are new ones.
bool NodeDataset::TakeTrials() {
  std::vector<std::string> ids;
  for (const auto& trial : state_.trials)
    ids.push_back(trial.id);
  std::erase_if(trials_, [&ids](const auto& trial) {
    return std::ranges::find(ids, trial.first) == ids.end();
  });
  deriver_->TryOnly(ids);
  return std::ranges::any_of(ids, [this](const auto& id) { return !trials_.contains(id); });
}

void NodeDataset::StartTrials(const PlanTask::Base& base, const PlanTask::Lists& lists) {
  std::shared_ptr<const PlanTask> inputs;
  for (const auto& trial : state_.trials) {
    if (!trials_.try_emplace(trial.id).second) continue;
    if (!inputs) {
      inputs = std::make_shared<const PlanTask>(PlanTask{
          .version = state_.planned, .self = self_, .base = base, .sizes = sizes_, .lists = lists});
    }
    deriver_->Try({.id = trial.id,
                   .following = FollowOnTrial(state_, trial),
                   .dataset = state_.key,
                   .inputs = inputs});
  }
}

void NodeDataset::OnNoParts(const Status& why) {
  // A coordinator that has begun again: the state that it gives out next has another base.
  if (why.code() == Code::kNotFound) return;
  for (const auto& trial : state_.trials) {
    if (trials_.contains(trial.id)) continue;
    trials_[trial.id] = coordination::TrialReport{
        .id = trial.id, .planned = state_.planned, .error = why.ToString().substr(0, kMaxWhyBytes)};
  }
}

// What was derived before holds for the reads before the cuts, unless it was of other orders.
void NodeDataset::TakePlanInputs(const Following& next) {
  ++plan_number_;
  awaits_plan_ = next.HasPlan();
  plan_started_ = false;
  later_evictions_.clear();
  if (!awaits_plan_) deriver_->GiveUp();
  if (next.retention != Retention::kOptimal) {
    newest_.clear();
    newest_digest_.clear();
    cache_.uses().ForgetAll();
    return book_.ForgetAll();
  }
  for (const auto& before : following_.streams) {
    const auto stream =
        std::ranges::find(state_.streams, before.id, &coordination::StreamState::id);
    const auto planned = std::ranges::find(next.streams, before.id, &coordination::StreamState::id);
    const bool is_other_order = planned == next.streams.end()
                                    ? stream != state_.streams.end() && stream->complete
                                    : planned->recipe != before.recipe;
    if (!is_other_order) continue;
    book_.ForgetStream(before.id);
    cache_.uses().ForgetStream(before.id);
  }
}

void NodeDataset::TrimToShare() {
  if (!following_.HasPlan() && IsPlaced(state_, self_)) cache_.retention_manager().TrimToCapacity();
}

void NodeDataset::StartPlan(PlanTask::Base base, PlanTask::Lists lists) {
  StartTrials(base, lists);
  if (!awaits_plan_ || std::exchange(plan_started_, true)) return;
  // What lies with members that follow something else is found there, but no plan counts on it.
  std::erase_if(base, [this](const auto& held) {
    return CapacityOf(following_.capacities, held.first) == 0 &&
           CapacityOf(state_.capacities, held.first) > 0;
  });
  deriver_->Begin({.number = plan_number_,
                   .version = state_.planned,
                   .self = self_,
                   .streams = following_.streams,
                   .objective = following_.objective,
                   .capacities = following_.capacities,
                   .base = std::move(base),
                   .sizes = sizes_,
                   .positions = cache_.has_disk(),
                   .lists = std::move(lists)});
}

void NodeDataset::OnDerived(DerivedWindow window, MonotonicTime now) {
  if (window.trial) {
    const auto asked = trials_.find(window.trial->id);
    if (asked != trials_.end()) asked->second = std::move(window.trial);
    return;
  }
  if (window.number != plan_number_) return;  // of what is followed no more
  if (!window.status.ok()) {
    Log(LogLevel::kError, "no plan could be derived",
        {{"dataset", state_.name}, {"why", window.status.ToString()}});
    return;
  }
  cache_.retention_manager().KeepFor(window.passes_ahead);
  if (window.first) {
    awaits_plan_ = false;
    TakeInForce();
    Evict(window.evictions, std::numeric_limits<PassNumber>::max());
    Depart(window.departures, now);
  } else if (!window.evictions.empty() && !window.passes.empty()) {
    const plan::PassKey& key = window.passes.front().plan->key();
    later_evictions_.push_back({.stream = key.stream, .pass = key.pass, .ids = window.evictions});
  }
  for (DerivedPass& pass : window.passes) {
    const plan::PlanStats& stats = pass.plan->stats();
    const plan::PassKey& key = pass.plan->key();
    newest_ = fmt::format("{} {:016x} {}", coordination::FormatVersion(window.version), key.stream,
                          key.pass);
    newest_digest_ = fmt::format("{:016x}", pass.plan->digest());
    Log(LogLevel::kInfo, "pass planned",
        {{"dataset", state_.name},
         {"plan", newest_},
         {"digest", newest_digest_},
         {"reads", stats.accesses},
         {"store_reads", stats.store_reads},
         {"moves", stats.moves}});
    if (pass.positions) cache_.uses().Add(key.stream, key.pass, pass.length, pass.positions);
    book_.Add(std::move(pass));
  }
  cache_.OnNewPlan(now);
}

// By a plan that gives others the share which this node had, or a part of it.
void NodeDataset::Depart(const std::vector<RetentionManager::Departure>& departures,
                         MonotonicTime now) {
  const Ending way = ending_.value_or(Ending{now + kDepartWithin, RetentionManager::OnDisk::kGoes});
  const std::size_t samples =
      cache_.retention_manager().Relocate(departures, way.on_disk, way.deadline, now);
  // What has come since the base was made is not in it.
  if (ending_ && CapacityOf(state_.capacities, self_) == 0) (void)GiveAway(now);
  if (give_away_at_) give_away_at_ = now;
  GiveAwayIfDue(now);
  if (samples == 0) return;
  Log(LogLevel::kInfo, "samples go to other nodes by the plan",
      {{"dataset", state_.name}, {"samples", samples}});
}

void NodeDataset::OnEnding(const Ending& ending) {
  ending_ = ending;
  give_away_at_.reset();
  cache_.OnEnding();
}

std::size_t NodeDataset::GiveAway(MonotonicTime now) {
  has_left_ = true;
  CHECK(ending_.has_value());
  return cache_.retention_manager().GiveAway(ending_->on_disk, ending_->deadline, now);
}

bool NodeDataset::AwaitsLastPlan() const {
  return following_.HasPlan() && IsPlaced(state_, self_);
}

void NodeDataset::GiveAwayIfDue(MonotonicTime now) {
  if (!give_away_at_ || now < *give_away_at_) return;
  give_away_at_ = now + kGiveAwayAgain;
  const std::size_t samples = cache_.retention_manager().GiveAway(RetentionManager::OnDisk::kGoes,
                                                                  now + kDepartWithin, now);
  if (samples == 0) return;
  Log(LogLevel::kInfo, "samples go to the nodes on which the dataset is placed",
      {{"dataset", state_.name}, {"samples", samples}});
}

void NodeDataset::Evict(const std::vector<SampleId>& ids, PassNumber before) {
  for (const SampleId id : ids)
    cache_.retention_manager().Evict(id, before);
}

bool NodeDataset::Knows(StreamId stream) const {
  return std::ranges::binary_search(state_.streams, stream, {}, &coordination::StreamState::id);
}

void NodeDataset::OnPassSeen(StreamId stream, PassNumber pass) {
  if (!Knows(stream)) return;
  PassNumber& seen = seen_[stream];
  seen = std::max(seen, pass);
  cache_.passes().OnPassBegun(stream, pass);
}

void NodeDataset::FollowStreams(const StreamTable& streams) {
  std::map<StreamId, PassNumber> through;
  for (const auto& [stream, pass] : seen_) {
    through[stream] = pass + 1;
    const auto here = streams.Passes(stream);
    const PassNumber lowest = here ? here->lowest : pass;
    if (lowest <= reached_[stream]) continue;
    reached_[stream] = lowest;
    cache_.retention_manager().OnPassReached(stream, lowest);
    book_.Forget(stream, lowest - 1);
    std::erase_if(later_evictions_, [&, id = stream](const LaterEvictions& later) {
      if (later.stream != id || later.pass > lowest) return false;
      Evict(later.ids, later.pass);
      return true;
    });
  }
  deriver_->PlanThrough(through);
  std::vector<StreamId> gone;  // nobody has told the coordinator of them, or they are over
  for (const auto& [stream, _] : cache_.passes().passes()) {
    if (!Knows(stream) && !streams.Passes(stream)) gone.push_back(stream);
  }
  for (const StreamId stream : gone)
    cache_.passes().ForgetStream(stream);
}

coordination::RequestNumber NodeDataset::TakeInventoryRequest() {
  if (state_.inventory_wanted == 0 || state_.inventory_wanted == inventory_given_) return 0;
  inventory_given_ = state_.inventory_wanted;
  return inventory_given_;
}

coordination::DatasetReport NodeDataset::Report() const {
  const Counters& counters = cache_.counters();
  return {.name = state_.name,
          .plan = newest_,
          .plan_digest = newest_digest_,
          .used_bytes = cache_.tier().used(),
          .disk_used_bytes = cache_.tier().on_disk(),
          .samples = cache_.tier().samples(),
          .hits = counters.hits_local,
          .peer_hits = counters.hits_peer,
          .misses = counters.misses,
          .miss_bytes = counters.miss_bytes,
          .moves = counters.moves,
          .moved_bytes = counters.moved_bytes,
          .planned_misses = counters.predicted_misses,
          .covered_reads = counters.covered_local + counters.covered_peer + counters.covered_misses,
          .covered_hits = counters.covered_local + counters.covered_peer,
          .predicted_hit_ratio = book_.hit_ratio(),
          .manifest_digest = state_.manifest_digest,
          .total_samples = sizes_.count(),
          .total_bytes = sizes_.total(),
          .revision = revision_,
          .derived = derived_,
          .passes = ReportPasses(),
          .trials = ReportTrials()};
}

std::vector<coordination::TrialReport> NodeDataset::ReportTrials() const {
  std::vector<coordination::TrialReport> reports;
  for (const auto& [_, report] : trials_) {
    if (report) reports.push_back(*report);
  }
  return reports;
}

// Of streams that the state knows.
std::vector<coordination::PassReport> NodeDataset::ReportPasses() const {
  std::vector<coordination::PassReport> reports;
  for (const auto& [stream, passes] : cache_.passes().passes()) {
    if (!Knows(stream)) continue;
    for (const coordination::PassReport& counted : passes) {
      coordination::PassReport& report = reports.emplace_back(counted);
      const plan::NodeShare share = book_.ShareOf(stream, counted.pass);
      report.planned_reads = share.reads;
      report.planned_misses = share.store_reads;
      report.planned_miss_bytes = share.store_bytes;
      report.planned_moved_bytes = share.moved_bytes;
    }
  }
  return reports;
}

}  // namespace optcache::node
