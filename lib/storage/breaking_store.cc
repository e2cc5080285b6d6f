#include "storage/breaking_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::storage {
namespace {

// As docs/metrics.md says.
double GaugeOf(CircuitBreaker::State state) {
  switch (state) {
    case CircuitBreaker::State::kClosed:
      return 0;
    case CircuitBreaker::State::kHalfOpen:
      return 1;
    case CircuitBreaker::State::kOpen:
      return 2;
  }
  return 2;
}

}  // namespace

BreakingStore::BreakingStore(std::unique_ptr<ObjectStore> inner, CircuitBreakerOptions options,
                             const Clock& clock)
    : inner_(std::move(inner)), clock_(clock), breaker_(options) {}

BreakingStore::~BreakingStore() {
  Shutdown();
}

Result<CircuitBreaker::Request> BreakingStore::Start() {
  const MonotonicTime now = clock_.Now();
  const MutexLock lock(mutex_);
  if (const auto request = breaker_.Start(now)) return *request;
  const std::string next =
      breaker_.state() == CircuitBreaker::State::kHalfOpen
          ? "it is being tried now"
          : fmt::format("it will be tried again in {:.1f} s",
                        ToSeconds(std::max(breaker_.probe_at() - now, Duration::zero())));
  return Error(
      Code::kUnavailable,
      fmt::format("not asked: the store {} has answered nothing for {:.0f} s, {} (last: {})",
                  name(), ToSeconds(now - breaker_.failing_since()), next, last_failure_));
}

void BreakingStore::End(CircuitBreaker::Request request, const Status& status) {
  const MonotonicTime now = clock_.Now();
  bool changed = false;
  bool closed = false;
  Duration failing{};
  {
    const MutexLock lock(mutex_);
    const CircuitBreaker::End end = BreakerEndOf(status.code());
    if (end == CircuitBreaker::End::kFailed) last_failure_ = status.message();
    has_answered_ = has_answered_ || end == CircuitBreaker::End::kAnswered;
    changed = breaker_.OnEnd(request, end, now);
    closed = breaker_.state() == CircuitBreaker::State::kClosed;
    failing = now - breaker_.failing_since();
  }
  if (!changed) return;
  if (closed) {
    Log(LogLevel::kInfo, "the store answers again",
        {{"store", name()}, {"was_away_s", fmt::format("{:.0f}", ToSeconds(failing))}});
  } else {
    Log(LogLevel::kError, "the store answers nothing; reads of it wait until it does",
        {{"store", name()},
         {"for_s", fmt::format("{:.0f}", ToSeconds(failing))},
         {"why", status.message()}});
  }
}

Status BreakingStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  const Result<CircuitBreaker::Request> started = Start();
  if (!started) return Status(started.error()).WithContext(Describe(request));
  const CircuitBreaker::Request as = *started;
  Status accepted = inner_->Read(std::move(request),
                                 [this, as, done = std::move(done)](ReadOutcome outcome) mutable {
                                   // One from which bytes come is there, however it ends.
                                   End(as, outcome.received > 0 ? OkStatus() : outcome.status);
                                   done(std::move(outcome));
                                 });
  if (!accepted.ok()) End(as, {Code::kCancelled, "refused"});  // nothing was sent
  return accepted;
}

Result<ObjectInfo> BreakingStore::Stat(const std::string& object, Deadline deadline) {
  ASSIGN_OR_RETURN(const CircuitBreaker::Request as, Start());
  Result<ObjectInfo> info = inner_->Stat(object, deadline);
  End(as, info ? OkStatus() : info.error());
  return info;
}

Result<ObjectListing> BreakingStore::List(Deadline deadline, const ListProgress& progress) {
  ASSIGN_OR_RETURN(const CircuitBreaker::Request as, Start());
  Result<ObjectListing> listing = inner_->List(deadline, progress);
  End(as, listing ? OkStatus() : listing.error());
  return listing;
}

void BreakingStore::Shutdown() {
  inner_->Shutdown();
}

StoreHealth BreakingStore::Health() const {
  const MonotonicTime now = clock_.Now();
  const MutexLock lock(mutex_);
  const CircuitBreaker::State state = breaker_.state();
  if (state == CircuitBreaker::State::kClosed)
    return {.state = has_answered_ ? StoreHealth::State::kAnswers : StoreHealth::State::kUntried};
  if (state == CircuitBreaker::State::kOpen && now - breaker_.probe_at() >= kStaleAfter) return {};
  return {.state = StoreHealth::State::kSilent,
          .silent_for = now - breaker_.failing_since(),
          .cause = last_failure_};
}

void BreakingStore::VisitCounters(const CounterVisitor& visit) const {
  inner_->VisitCounters(visit);
  double state = 0;
  std::uint64_t opened = 0;
  {
    const MutexLock lock(mutex_);
    state = GaugeOf(breaker_.state());
    opened = breaker_.times_opened();
  }
  const MetricLabels store = {{"store", name()}};
  visit(MetricKind::kGauge, "optcache_store_breaker_state", store, state);
  visit(MetricKind::kCounter, "optcache_store_breaker_opened_total", store,
        static_cast<double>(opened));
}

}  // namespace optcache::storage
