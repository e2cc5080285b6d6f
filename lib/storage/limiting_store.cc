// Queues requests in front of a gate, which they pass in the order in which they came.
//
//   Read, Stat ─► Enter ─► the gate is open and nothing waits: a ticket at once
//                    └───► waiting_ ─► Look: TakeTurns ─► turn(ticket), or too late
//   inner store ends ─► End: the gate learns, and may open
//
// The idea: the gate (request_gate.h) decides, as a pure state; this file adds the queue, the lock
// and the alarm, which wakes when the gate opens or the earliest deadline comes.
//
// Invariants: a ticket that was given is ended once, also if the inner store refuses. Nothing
// passes by what waits. A turn is told without the lock, because it calls the inner store. A read
// that came all the time, but too slowly, says nothing about the store's load (LoadStatus).

#include "storage/limiting_store.h"

#include <algorithm>
#include <future>
#include <utility>

#include <fmt/format.h>

namespace optcache::storage {
namespace {

constexpr Duration kLongestLook = std::chrono::seconds(10);

// What the end of a read says of the store's load: nothing, if it came all the time, but too slowly
// for its deadline.
Status LoadStatus(const ReadOutcome& outcome) {
  const bool slow = outcome.status.code() == Code::kDeadlineExceeded && outcome.received > 0;
  return slow ? Status(Code::kCancelled, "slow") : outcome.status;
}

}  // namespace

// Shared between the inner store's callback and this store, which needs it again if the inner store
// refuses.
struct LimitingStore::Operation {
  ReadRequest request;
  ReadCallback done;
  Duration held_back = Duration::zero();
};

LimitingStore::LimitingStore(std::unique_ptr<ObjectStore> inner, LimitingOptions options,
                             const Clock& clock)
    : inner_(std::move(inner)),
      options_(options),
      clock_(clock),
      gate_(options.gate),
      alarm_(clock, [this](MonotonicTime now) { return Look(now); }) {}

LimitingStore::~LimitingStore() {
  Shutdown();
}

// A ticket if it is its turn already; else `turn` is kept and called later.
Result<std::optional<LimitingStore::Ticket>> LimitingStore::Enter(Deadline deadline,
                                                                  ByteCount bytes, Turn turn) {
  const MonotonicTime now = clock_.Now();
  MonotonicTime look;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return Error(Code::kCancelled, name() + ": shut down");
    if (waiting_.empty() && gate_.MayStart(now)) return gate_.OnStart(bytes, now);
    if (waiting_.size() >= options_.waiting_max) {
      return Error(Code::kResourceExhausted, fmt::format("{}: {} reads wait for their turn already",
                                                         name(), waiting_.size()));
    }
    waiting_.push_back({.deadline = deadline, .bytes = bytes, .turn = std::move(turn)});
    earliest_ = std::min(earliest_, deadline.at());
    look = NextLook(now);
  }
  alarm_.WakeAt(look);
  return std::nullopt;
}

Status LimitingStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  const Deadline deadline = request.deadline;
  const ByteCount bytes = request.destination.size();
  const auto operation = std::make_shared<Operation>(
      Operation{.request = std::move(request), .done = std::move(done)});
  ASSIGN_OR_RETURN(const std::optional<Ticket> ticket,
                   Enter(deadline, bytes,
                         [this, operation, asked = clock_.Now()](Status turn, Ticket its_ticket) {
                           operation->held_back = clock_.Now() - asked;
                           if (!turn.ok()) {
                             turn = std::move(turn).WithContext(Describe(operation->request));
                           } else {
                             turn = Send(operation, its_ticket);
                             if (turn.ok()) return;
                           }
                           operation->done({.status = std::move(turn)});
                         }));
  return ticket ? Send(operation, *ticket) : OkStatus();
}

Status LimitingStore::Send(const std::shared_ptr<Operation>& operation, Ticket ticket) {
  operation->request.destination.CountRequest();
  Status accepted =
      inner_->Read(std::move(operation->request), [this, operation, ticket](ReadOutcome outcome) {
        End(ticket, LoadStatus(outcome), outcome.retry_after);
        outcome.held_back += operation->held_back;
        operation->done(std::move(outcome));
      });
  if (!accepted.ok()) End(ticket, accepted, Duration::zero());
  return accepted;
}

void LimitingStore::End(Ticket ticket, const Status& status, Duration retry_after) {
  const MonotonicTime now = clock_.Now();
  MonotonicTime look;
  {
    const MutexLock lock(mutex_);
    gate_.OnEnd(ticket, status, retry_after, now);
    if (waiting_.empty()) return;
    look = NextLook(now);
  }
  alarm_.WakeAt(look);
}

void LimitingStore::TakeExpired(MonotonicTime now, std::vector<Told>& told) {
  earliest_ = MonotonicTime::max();
  std::erase_if(waiting_, [&](Waiting& waiting) {
    if (!waiting.deadline.Expired(now)) {
      earliest_ = std::min(earliest_, waiting.deadline.at());
      return false;
    }
    told.push_back({.turn = std::move(waiting.turn),
                    .status = {Code::kResourceExhausted,
                               fmt::format("not asked for: it was not its turn before its deadline "
                                           "({}, and {} reads wait)",
                                           gate_.Describe(now), waiting_.size())}});
    return true;
  });
}

// Those whose turn it is, and those whose deadline has come. All that wait are looked at only for
// deadlines: at most once for each.
std::vector<LimitingStore::Told> LimitingStore::TakeTurns(MonotonicTime now) {
  std::vector<Told> told;
  if (earliest_ <= now) TakeExpired(now, told);
  while (!waiting_.empty() && gate_.MayStart(now)) {
    told.push_back({.turn = std::move(waiting_.front().turn),
                    .status = OkStatus(),
                    .ticket = gate_.OnStart(waiting_.front().bytes, now)});
    waiting_.pop_front();
  }
  return told;
}

void LimitingStore::NoteHeldBack(MonotonicTime now) {
  if (waiting_.empty()) return;
  const RequestGate::HeldBack held = gate_.HeldBackBy(now);
  if (held.by_requests) ++held_by_requests_;
  if (held.by_bytes) ++held_by_bytes_;
}

MonotonicTime LimitingStore::NextLook(MonotonicTime now) {
  NoteHeldBack(now);
  if (waiting_.empty()) return now + kLongestLook;
  if (gate_.MayStart(now)) return now;
  return std::min(gate_.OpensAt(now).value_or(now + kLongestLook), earliest_);
}

// On the alarm's thread.
MonotonicTime LimitingStore::Look(MonotonicTime now) {
  std::vector<Told> told;
  MonotonicTime next;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return now + kLongestLook;
    told = TakeTurns(now);
    next = NextLook(now);
  }
  for (Told& one : told)
    one.turn(std::move(one.status), one.ticket);
  return next;
}

Result<ObjectInfo> LimitingStore::Stat(const std::string& object, Deadline deadline) {
  // Its turn comes, or its deadline, or the shutdown.
  auto promise = std::make_shared<std::promise<Result<Ticket>>>();
  ASSIGN_OR_RETURN(std::optional<Ticket> ticket,
                   Enter(deadline, 0, [promise](Status turn, Ticket its_ticket) {
                     if (turn.ok()) {
                       promise->set_value(its_ticket);
                     } else {
                       promise->set_value(Error(std::move(turn)));
                     }
                   }));
  if (!ticket) {
    Result<Ticket> later = promise->get_future().get();
    if (!later) return Error(std::move(later).error().WithContext(object));
    ticket = *later;
  }
  Result<ObjectInfo> info = inner_->Stat(object, deadline);
  End(*ticket, info ? OkStatus() : info.error(), Duration::zero());
  return info;
}

Result<ObjectListing> LimitingStore::List(Deadline deadline, const ListProgress& progress) {
  return inner_->List(deadline, progress);
}

void LimitingStore::Shutdown() {
  std::deque<Waiting> cancelled;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    cancelled.swap(waiting_);
  }
  alarm_.Stop();
  for (Waiting& waiting : cancelled)
    waiting.turn({Code::kCancelled, "the store was shut down"}, 0);
  inner_->Shutdown();
}

bool LimitingStore::HasRoom() {
  const MutexLock lock(mutex_);
  return !stopping_ && waiting_.empty() && gate_.MayStart(clock_.Now());
}

RateUse LimitingStore::Rates() {
  const MutexLock lock(mutex_);
  NoteHeldBack(clock_.Now());
  return {.most = options_.gate.rates,
          .in_force = gate_.rates(),
          .requests = gate_.started(),
          .bytes = gate_.started_bytes(),
          .held_by_requests = held_by_requests_,
          .held_by_bytes = held_by_bytes_};
}

void LimitingStore::SetRates(const StoreRates& rates) {
  const MonotonicTime now = clock_.Now();
  MonotonicTime look;
  {
    const MutexLock lock(mutex_);
    gate_.SetRates(rates, now);
    look = NextLook(now);
  }
  alarm_.WakeAt(look);
}

void LimitingStore::VisitCounters(const CounterVisitor& visit) const {
  inner_->VisitCounters(visit);
  size_t waiting = 0;
  unsigned limit = 0;
  std::uint64_t decreases = 0;
  {
    const MutexLock lock(mutex_);
    waiting = waiting_.size();
    limit = gate_.concurrency().limit();
    decreases = gate_.concurrency().decreases();
  }
  const MetricLabels store = {{"store", name()}};
  visit(MetricKind::kGauge, "optcache_store_reads_held_back", store, static_cast<double>(waiting));
  visit(MetricKind::kGauge, "optcache_store_concurrency_limit", store, static_cast<double>(limit));
  visit(MetricKind::kCounter, "optcache_store_concurrency_decreases_total", store,
        static_cast<double>(decreases));
}

}  // namespace optcache::storage
