// Carries out the steps of Election (read, write, wait) on a Lease, and tells who leads.
//
//   Take ─► Read or Write ─► OnStep: tell what has changed ─► Take
//      └──► a timer ─► Election::Next ─► Take
//   each step, each timer ─► GoesOn: is our time over? ─► Resign, on_stopped
//
// The idea: whether we lead is computed from clocks at each question (LeadsFor), and callbacks only
// follow. So a process that was frozen past its time does not lead from its first instruction on,
// before any timer has run. If it stood still until others could lead, the election is over for it.
//
// Invariants: at most one request is under way. `leads_` is what callbacks know: on_started and
// on_stopped alternate. Any callback may stop or destroy the elector, so `life` and `state_` are
// looked at after it. On Stop a Lease of ours is given back only after the request under way has
// ended.

#include "kube/leader_election.h"

#include <algorithm>
#include <utility>

#include "base/callback_guard.h"
#include "base/log.h"
#include "kube/election.h"

namespace optcache::kube {
namespace {

// So that a renewal that hangs can be tried once more before it is too late.
constexpr int kTriesWithinDeadline = 2;
// Of a Lease that somebody has edited.
constexpr std::int64_t kMaxDurationSeconds = 3600;

LeaseRecord ToRecord(const Json& lease) {
  return {.holder = TextAt(lease, "/spec/holderIdentity"),
          .duration_seconds = std::clamp<std::int64_t>(
              NumberAt(lease, "/spec/leaseDurationSeconds").value_or(0), 0, kMaxDurationSeconds),
          .acquire_time = TextAt(lease, "/spec/acquireTime"),
          .renew_time = TextAt(lease, "/spec/renewTime"),
          .transitions = static_cast<std::uint64_t>(
              std::max<std::int64_t>(0, NumberAt(lease, "/spec/leaseTransitions").value_or(0)))};
}

Json ToSpec(const LeaseRecord& record) {
  return {{"holderIdentity", record.holder},
          {"leaseDurationSeconds", record.duration_seconds},
          {"acquireTime", record.acquire_time},
          {"renewTime", record.renew_time},
          {"leaseTransitions", record.transitions}};
}

}  // namespace

class LeaderElector::Impl {
 public:
  Impl(net::EventLoop& loop, const Clock& clock, Client& client, LeaderElectionOptions options,
       LeaderCallbacks callbacks)
      : loop_(loop),
        clock_(clock),
        client_(client),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        election_({.identity = options_.identity,
                   .lease_duration = options_.lease_duration,
                   .renew_deadline = options_.renew_deadline,
                   .retry_period = options_.retry_period},
                  options_.seed) {}

  void Start() {
    if (state_ != State::kIdle) return;
    state_ = State::kRunning;
    Take(election_.Next(Now()));
  }
  void Stop(Duration timeout, std::function<void()> released);
  std::optional<Duration> LeadsFor() const { return election_.LeadsFor(Now()); }
  std::optional<MonotonicTime> WritesUntil() const {
    const Moment now = Now();
    const auto rest = election_.LeadsFor(now);
    if (!rest) return std::nullopt;
    return now.at + *rest;
  }
  std::uint64_t term() const { return election_.term(); }
  std::string leader() const { return election_.Holder(Now()); }
  void VisitCounters(const CounterVisitor& visitor) const {
    visitor(MetricKind::kGauge, "leader_election_master_status",
            {{"name", options_.lease.ToString()}}, LeadsFor() ? 1 : 0);
  }

 private:
  enum class State { kIdle, kRunning, kReleasing, kOver };

  Moment Now() const { return Moment::Of(clock_); }
  void Take(const ElectionStep& step);
  void Read();
  void Write(const WriteLease& step);
  void OnStep(const ElectionStep& step);
  bool GoesOn();
  void TellLeader();
  void Release();
  void Released();
  void Request(ApiRequest request, Client::ObjectCallback callback);

  net::EventLoop& loop_;
  const Clock& clock_;
  Client& client_;
  const LeaderElectionOptions options_;
  const LeaderCallbacks callbacks_;
  Election election_;
  State state_ = State::kIdle;
  bool requesting_ = false;
  bool leads_ = false;  // as the callbacks know
  std::string told_leader_;
  Json lease_;  // as last read or written
  net::Timer next_;
  net::Timer end_of_time_;  // of our leadership, or of the release
  std::function<void()> released_;
  CallbackGuard guard_;  // last
};

void LeaderElector::Impl::Take(const ElectionStep& step) {
  if (std::holds_alternative<ReadLease>(step)) return Read();
  if (const auto* write = std::get_if<WriteLease>(&step)) return Write(*write);
  next_ = loop_.After(std::get<WaitForLease>(step).wait, [this] {
    if (GoesOn()) Take(election_.Next(Now()));
  });
}

void LeaderElector::Impl::Request(ApiRequest request, Client::ObjectCallback callback) {
  request.timeout = options_.renew_deadline / kTriesWithinDeadline;
  requesting_ = true;
  client_.Call(std::move(request),
               guard_.Wrap([this, callback = std::move(callback)](ApiResult<Json> result) {
                 requesting_ = false;
                 callback(std::move(result));
               }));
}

void LeaderElector::Impl::Read() {
  Request({.verb = Verb::kGet, .resource = kLeases, .key = options_.lease},
          [this](ApiResult<Json> result) {
            if (state_ == State::kReleasing) return Release();
            if (!result && !result.error().not_found()) {
              Log(LogLevel::kWarning, "cannot read the lease",
                  {{"error", result.error().status.ToString()}});
              return OnStep(election_.OnReadFailed());
            }
            std::optional<LeaseRecord> record;
            lease_ = result ? *std::move(result) : Json();
            if (!lease_.is_null()) record = ToRecord(lease_);
            OnStep(election_.OnRead(record, Now()));
          });
}

void LeaderElector::Impl::Write(const WriteLease& step) {
  Json lease = step.create ? MakeObject(kLeases, options_.lease) : lease_;
  lease["spec"] = ToSpec(step.record);
  ApiRequest request{.verb = step.create ? Verb::kCreate : Verb::kUpdate,
                     .resource = kLeases,
                     .key = options_.lease,
                     .body = ToText(lease)};
  if (step.create) request.key.name.clear();
  Request(std::move(request), [this](ApiResult<Json> result) {
    if (result) lease_ = *std::move(result);
    if (state_ == State::kReleasing) return Release();
    if (result) return OnStep(election_.OnWritten(Now()));
    const ApiError& error = result.error();
    const bool conflict = error.status.code() == Code::kConflict || error.not_found();
    if (!conflict) {
      Log(LogLevel::kWarning, "cannot write the lease", {{"error", error.status.ToString()}});
    }
    OnStep(election_.OnWriteFailed(conflict ? WriteFailure::kConflict : WriteFailure::kOther));
  });
}

void LeaderElector::Impl::OnStep(const ElectionStep& step) {
  if (!GoesOn()) return;
  const CallbackGuard::Token life = guard_.token();
  const std::optional<Duration> rest = LeadsFor();
  if (rest) end_of_time_ = loop_.After(*rest, [this] { GoesOn(); });
  TellLeader();
  if (life.expired() || state_ != State::kRunning) return;
  if (rest && !std::exchange(leads_, true)) {
    Log(LogLevel::kInfo, "leading", {{"lease", options_.lease.ToString()}, {"term", term()}});
    if (callbacks_.on_started) callbacks_.on_started(term());
  }
  if (!life.expired() && state_ == State::kRunning) Take(step);
}

// Ends a leadership whose time is over. False: so is the election, or this has died.
bool LeaderElector::Impl::GoesOn() {
  if (state_ != State::kRunning) return false;
  if (!election_.Lost(Now())) return true;
  // An awake process notices at once; until lease_duration nobody else could lead.
  const bool frozen =
      election_.LostSince(Now()) > options_.lease_duration - options_.renew_deadline;
  election_.Resign();
  if (frozen) {
    state_ = State::kOver;
    next_.Cancel();
  }
  const std::string why =
      frozen ? "this process stood still for longer than its lease lasts"
             : "the lease " + options_.lease.ToString() + " could not be renewed in time";
  Log(LogLevel::kError, "leading no more", {{"why", why}, {"term", term()}});
  const CallbackGuard::Token life = guard_.token();
  if (std::exchange(leads_, false) && callbacks_.on_stopped)
    callbacks_.on_stopped(frozen ? LeadershipEnd::kFrozen : LeadershipEnd::kNotRenewed, why);
  return !life.expired() && state_ == State::kRunning;
}

void LeaderElector::Impl::TellLeader() {
  const std::string leader = this->leader();
  if (leader == told_leader_) return;
  told_leader_ = leader;
  if (callbacks_.on_leader) callbacks_.on_leader(leader);
}

void LeaderElector::Impl::Stop(Duration timeout, std::function<void()> released) {
  const bool led = state_ == State::kRunning && LeadsFor();
  election_.Resign();
  next_.Cancel();
  released_ = std::move(released);
  state_ = State::kReleasing;
  end_of_time_ = loop_.After(timeout, [this] { Released(); });
  if (!led) {
    loop_.Post(guard_.Wrap([this] { Released(); }));
  } else if (!requesting_) {
    Release();
  }
}

// Candidates for the Lease need not wait for its end: one second is the least that it can have.
void LeaderElector::Impl::Release() {
  LeaseRecord record = ToRecord(lease_);
  if (record.holder != options_.identity) return Released();
  record.holder.clear();
  record.duration_seconds = 1;
  Json lease = lease_;
  lease["spec"] = ToSpec(record);
  Request(
      {.verb = Verb::kUpdate, .resource = kLeases, .key = options_.lease, .body = ToText(lease)},
      [this](const ApiResult<Json>& result) {
        if (!result) {
          Log(LogLevel::kWarning, "cannot give the lease back",
              {{"error", result.error().status.ToString()}});
        }
        Released();
      });
}

void LeaderElector::Impl::Released() {
  if (std::exchange(state_, State::kOver) == State::kOver) return;
  end_of_time_.Cancel();
  if (const auto released = std::exchange(released_, nullptr)) released();
}

LeaderElector::LeaderElector(net::EventLoop& loop, const Clock& clock, Client& client,
                             LeaderElectionOptions options, LeaderCallbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, clock, client, std::move(options), std::move(callbacks))) {
}
LeaderElector::~LeaderElector() = default;

void LeaderElector::Start() {
  impl_->Start();
}
void LeaderElector::Stop(Duration timeout, std::function<void()> released) {
  impl_->Stop(timeout, std::move(released));
}
bool LeaderElector::IsLeader() const {
  return impl_->LeadsFor().has_value();
}
std::optional<MonotonicTime> LeaderElector::WritesUntil() const {
  return impl_->WritesUntil();
}
std::uint64_t LeaderElector::term() const {
  return impl_->term();
}
std::string LeaderElector::leader() const {
  return impl_->leader();
}
void LeaderElector::VisitCounters(const CounterVisitor& visitor) const {
  impl_->VisitCounters(visitor);
}

}  // namespace optcache::kube
