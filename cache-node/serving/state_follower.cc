// Applies each desired state in one order: other nodes, then who may do what, then manifests, the
// copy on the volume, and the datasets. While a state does not list this node, what it holds stays
// for when it is listed again.
//
// A report has what the tables and the datasets say at that moment. Tick compares what must not
// wait for the next one: streams and stores that changed, and a disk that failed. Drain looks every
// 50 ms whether all has left. A plan without this node says where its samples go; the datasets wait
// for it for half of the time, then give them to their next homes.

#include "cache-node/serving/state_follower.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "coordination/codec.h"
#include "coordination/desired_state.h"

namespace optcache::node {
namespace {

constexpr Duration kDrainLook = std::chrono::milliseconds(50);

std::optional<coordination::DesiredState> LoadFrom(const StateDir* dir) {
  return dir == nullptr ? std::nullopt : dir->LoadState();
}

}  // namespace

StateFollower::StateFollower(net::EventLoop& loop, const Clock& clock, Options options, Parts parts)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      parts_(parts),
      saved_(LoadFrom(parts.dir)),
      control_(
          loop, parts.http,
          {.node = options_.name,
           .version = saved_ ? saved_->version : coordination::Version{},
           .seed = options_.incarnation},
          {.report = [this] { return MakeReport(); },
           .answered = [this](std::uint64_t batch) { parts_.savings.OnAnswered(batch); },
           .apply = [this](const coordination::DesiredState& state) { Apply(state); },
           .trace = [this](const std::string& digest) { return parts_.streams.TraceBytes(digest); },
           .shares =
               [this](const std::vector<coordination::DatasetShare>& shares) {
                 parts_.rates.OnShares(shares, clock_.Now());
                 router_->TellShares();
               }}) {}

void StateFollower::Join(DatasetHost& datasets, MessageRouter& router) {
  datasets_ = &datasets;
  router_ = &router;
  const auto saved = std::exchange(saved_, std::nullopt);
  if (!saved) return;
  Log(LogLevel::kInfo, "going on with the state of the run before",
      {{"version", coordination::FormatVersion(saved->version)}});
  Apply(*saved);
}

Status StateFollower::Ready() const {
  if (datasets_->ending()) return {Code::kUnavailable, "draining"};
  if (self_ == 0) return {Code::kUnavailable, "waiting for the coordinator"};
  if (!datasets_->IsComplete()) return {Code::kUnavailable, "waiting for the datasets' manifests"};
  return OkStatus();
}

void StateFollower::Tick() {
  const std::uint64_t changes = parts_.streams.changes() + parts_.stores.changes();
  const ByteCount disk = disk_offered();
  if (changes == reported_changes_ && disk == reported_disk_) return;
  reported_changes_ = changes;
  reported_disk_ = disk;
  control_.ReportSoon();
}

// --- States -------------------------------------------------------------------------------------

void StateFollower::Apply(const coordination::DesiredState& state) {
  WarnOfConflicts(state);
  state_ = state;
  const bool listed = ApplyMembers();
  if (parts_.authorizer != nullptr) parts_.authorizer->OnState();
  if (parts_.manifests != nullptr) parts_.manifests->OnState(state_, listed ? self_ : 0);
  if (parts_.dir != nullptr) KeepState();
  if (listed) datasets_->OnState();
}

// Once for each stream, when its ranks begin to disagree.
void StateFollower::WarnOfConflicts(const coordination::DesiredState& next) const {
  std::set<StreamId> known;
  for (const auto* dataset : coordination::AllDatasets(state_)) {
    for (const auto& stream : dataset->streams) {
      if (!stream.conflict.empty()) known.insert(stream.id);
    }
  }
  for (const auto* dataset : coordination::AllDatasets(next)) {
    for (const auto& stream : dataset->streams) {
      if (stream.conflict.empty() || known.contains(stream.id)) continue;
      Log(LogLevel::kWarning, "ranks disagree, their order is not known: give all the same sampler",
          {{"stream", stream.name}, {"conflict", stream.conflict}});
    }
  }
}

// False while the state does not list this node: not yet, or not any more.
bool StateFollower::ApplyMembers() {
  const auto listed = std::ranges::find(state_.members, options_.name, &coordination::Member::name);
  const wire::MemberId self = listed == state_.members.end() ? 0 : listed->id;
  if (self != 0 && self != self_) {
    self_ = self;
    datasets_->BeginAs(self);
  }
  parts_.links.SetMembers(self, state_.members);
  return self != 0;
}

// On the volume before long; the next one follows this one.
void StateFollower::KeepState() {
  const auto kept = std::make_shared<Status>();
  const Status begun = parts_.worker.Run(
      [kept, dir = *parts_.dir, state = state_] { *kept = dir.SaveState(state); },
      [kept] {
        if (kept->ok()) return;
        Log(LogLevel::kWarning, "the state is not kept", {{"why", kept->ToString()}});
      });
  if (!begun.ok()) Log(LogLevel::kWarning, "the state is not kept", {{"why", begun.ToString()}});
}

// --- Reports ------------------------------------------------------------------------------------

coordination::Report StateFollower::MakeReport() {
  coordination::Report report{.node = options_.name,
                              .incarnation = options_.incarnation,
                              .address = options_.advertise,
                              .metrics = options_.metrics_url,
                              .capacity = options_.memory,
                              .disk = disk_offered(),
                              .leaving = datasets_->ending(),
                              .member = self_,
                              .applied = state_.version,
                              .streams = parts_.streams.Report(),
                              .savings = parts_.savings.Batch(),
                              .demands = parts_.rates.Report()};
  datasets_->Report(report, parts_.stores);
  if (parts_.manifests != nullptr) {
    report.manifest_url = parts_.manifests->url();
    report.manifests = parts_.manifests->Digests();
  }
  return report;
}

void StateFollower::VisitCounters(const CounterVisitor& visit) const {
  visit(MetricKind::kGauge, "optcache_state_version", {},
        static_cast<double>(state_.version.counter));
  visit(MetricKind::kGauge, "optcache_members", {}, static_cast<double>(state_.members.size()));
  visit(MetricKind::kGauge, "optcache_coordinator_connected", {}, control_.connected() ? 1.0 : 0.0);
}

// --- The end ------------------------------------------------------------------------------------

void StateFollower::Drain(Duration limit, std::function<void()> done) {
  const Deadline whole = Deadline::After(clock_, limit);
  const bool drains = limit > Duration::zero() && parts_.links.has_peers();
  if (drains && !datasets_->ending()) {
    datasets_->OnEnding({.deadline = whole.at(), .on_disk = options_.disk_at_end});
    control_.ReportSoon();
  }
  WaitForDrain(whole, Deadline::After(clock_, limit / 2), std::move(done));
}

void StateFollower::WaitForDrain(Deadline deadline, Deadline patience, std::function<void()> done) {
  const MonotonicTime now = clock_.Now();
  const bool over = !datasets_->ending() || deadline.Expired(now);
  if (!over) datasets_->GiveAway(!patience.Expired(now));
  if (over || datasets_->HasLeft()) {
    if (datasets_->ending()) datasets_->LogDrain();
    return done();
  }
  drain_ = loop_.After(kDrainLook, [this, deadline, patience, done = std::move(done)] {
    WaitForDrain(deadline, patience, done);
  });
}

}  // namespace optcache::node
