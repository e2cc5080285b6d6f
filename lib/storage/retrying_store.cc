// Makes attempts of reads, and keeps what waits. An Operation is in one place at a time:
//
//   Read ─► Attempt ─► inner store ─► EndAttempt ─► EndOperation ─► done
//              ▲     refused │             │ it may get better
//              │             └─► waiting_ ◄┘ by the time of the next attempt
//              └─ RunRetries ◄── waiting_, delayed_: the budget is empty, least time left first
//
// The lock guards queues, budget and counts. No call of the inner store or a reader is under it.

#include "storage/retrying_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "storage/circuit_breaker.h"

namespace optcache::storage {
namespace {

constexpr Duration kIdleRetryWait = std::chrono::seconds(10);  // the thread looks around this often

// What comes with other checksums so often is refused: the object itself may be damaged.
constexpr unsigned kDiffersMax = 2;
constexpr std::string_view kReadAgain = "it is read once more";
constexpr std::string_view kDiffersAgain =
    "nor was it at a second read: put the object into the store again, or find the cache, proxy or "
    "network that damages it on the way";

// What the store has not heard of was no load on it.
bool IsNoLoad(const Status& status) {
  return status.code() == Code::kResourceExhausted;
}

}  // namespace

// One read with all its attempts. Shared between the inner store's callback and this store, which
// needs it again if the inner store refuses an attempt.
struct RetryingStore::Operation {
  ReadRequest request;
  ReadCallback done;
  Backoff backoff;
  MonotonicTime patient_since;  // its begin, or when it last got bytes that had not come before
  unsigned attempts = 0;
  ByteCount filled = 0;  // of the destination, by attempts that ended within the object's bytes
  std::optional<WholeSums> sums{};  // of what fills it
  ReadOutcome last;                 // of the attempt before, while it waits for another
  bool paid = false;                // the attempt took of the budget
  bool unasked = false;      // the store was taken for gone and has not heard of the last attempt
  bool began_again = false;  // what had come did not fit the rest, and was thrown away
  unsigned differed = 0;     // how often all of it came, but with other checksums than the store's

  void NoteFailure(ReadOutcome& outcome, MonotonicTime now);
  // To be called before it is among the waiting, where another thread may take it.
  void Waits(bool waits) const {
    if (request.on_wait) request.on_wait(waits);
  }
};

// One Stat or List with all its attempts.
struct RetryingStore::Call {
  Backoff backoff;
  MonotonicTime began;
  Deadline deadline;
  unsigned attempts = 0;
};

// The next attempt goes on behind what has come, or begins again if the rest cannot be had. From
// then on bytes are no progress: the same ones may come and be thrown away any number of times.
void RetryingStore::Operation::NoteFailure(ReadOutcome& outcome, MonotonicTime now) {
  filled += outcome.filled;
  patient_since += outcome.held_back;  // waiting for its turn is not waiting for the store
  if (outcome.filled > 0) {
    sums = outcome.sums;
    if (began_again) return;
    patient_since = now;
    backoff.Reset();
    return;
  }
  const Code code = outcome.status.code();
  if (filled > 0 && (code == Code::kInvalidArgument || code == Code::kDataLoss)) {
    filled = 0;
    began_again = true;
    sums.reset();
    outcome.status = {Code::kDataLoss, outcome.status.message()};  // a server without ranges, say
  }
  if (!outcome.sums_differ) return;
  request.fresh = true;
  outcome.status = {code, fmt::format("{}; {}", outcome.status.message(),
                                      ++differed == kDiffersMax ? kDiffersAgain : kReadAgain)};
}

RetryingStore::RetryingStore(std::unique_ptr<ObjectStore> inner, RetryOptions options,
                             const Clock& clock)
    : inner_(std::move(inner)),
      options_(options),
      clock_(clock),
      failed_(clock),
      seeds_(options.seed),
      budget_(options.budget) {
  const MutexLock lock(mutex_);
  thread_ = std::jthread([this] { RunRetries(); });
}

RetryingStore::~RetryingStore() {
  Shutdown();
}

// Nothing comes of a Stat but its answer: until then there is silence.
Deadline RetryingStore::StatDeadline(Deadline whole) const {
  return Deadline(std::min(whole.at(), clock_.Now() + options_.silence_max));
}

TimeLeft RetryingStore::LeftOf(const Operation& operation, MonotonicTime now) const {
  return {.patience = Deadline(operation.patient_since + options_.patience).Remaining(now),
          .deadline = operation.request.deadline.Remaining(now)};
}

MonotonicTime RetryingStore::EndOf(const Operation& operation) const {
  return std::min(Deadline(operation.patient_since + options_.patience).at(),
                  operation.request.deadline.at());
}

std::uint64_t RetryingStore::NextSeed() {
  const MutexLock lock(mutex_);
  return seeds_.Next();
}

Status RetryingStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  {
    const MutexLock lock(mutex_);
    if (stopping_) return {Code::kCancelled, name() + ": shut down"};
    if (in_flight_ >= options_.reads_max) {
      return {Code::kResourceExhausted,
              fmt::format("{}: {} reads are under way already", name(), in_flight_)};
    }
    ++in_flight_;
  }
  const auto operation =
      std::make_shared<Operation>(Operation{.request = std::move(request),
                                            .done = std::move(done),
                                            .backoff = Backoff(options_.backoff, NextSeed()),
                                            .patient_since = clock_.Now(),
                                            .last = {}});
  Status refused = Attempt(operation);
  if (refused.ok() || WaitForStore(operation, refused)) return OkStatus();
  const MutexLock lock(mutex_);
  --in_flight_;
  return refused;
}

Status RetryingStore::Attempt(const std::shared_ptr<Operation>& operation) {
  ReadRequest request = operation->request;
  if (operation->filled > 0) {
    request.offset += operation->filled;
    request.destination = request.destination.After(operation->filled);
    request.sums = operation->sums;
  }
  request.silence_max = options_.silence_max;
  request.on_wait = nullptr;
  ++operation->attempts;
  return inner_->Read(std::move(request), [this, operation](ReadOutcome outcome) {
    EndAttempt(operation, std::move(outcome));
  });
}

// After an attempt that was not made, as the store is taken for gone; false if `refused` says
// something else, or if there is no time left to wait.
bool RetryingStore::WaitForStore(const std::shared_ptr<Operation>& operation,
                                 const Status& refused) {
  if (refused.code() != Code::kUnavailable) return false;
  --operation->attempts;
  operation->Waits(true);
  const MonotonicTime now = clock_.Now();
  const TimeLeft left = LeftOf(*operation, now);
  const MutexLock lock(mutex_);
  GiveBack(*operation);
  const auto wait =
      std::chrono::duration_cast<Duration>(options_.gone_wait * (0.5 + seeds_.Unit() / 2));
  if (stopping_ || wait >= std::min(left.patience, left.deadline)) return false;
  operation->unasked = true;
  operation->last = {.status = refused};
  waits_.Note(operation.get(), operation->patient_since, refused.message());
  waiting_.emplace(now + wait, operation);
  changed_.NotifyAll();
  return true;
}

void RetryingStore::LogFailure(const Operation& operation, const Status& status) {
  const ReadRequest& request = operation.request;
  failed_.Tell({.store = name(),
                .object = request.object,
                .begin = request.offset,
                .end = request.offset + request.destination.size(),
                .attempt = operation.attempts,
                .status = status});
}

StoreWaits RetryingStore::Waits() const {
  const MutexLock lock(mutex_);
  return waits_.At(clock_.Now());
}

void RetryingStore::EndAttempt(const std::shared_ptr<Operation>& operation, ReadOutcome outcome) {
  NoteAnswer(outcome.received > 0 ? OkStatus() : outcome.status);
  if (!outcome.status.ok()) {
    operation->NoteFailure(outcome, clock_.Now());
    LogFailure(*operation, outcome.status);
    const MutexLock lock(mutex_);
    ++counts_.errors[outcome.status.code()];
    if (IsNoLoad(outcome.status)) GiveBack(*operation);
    operation->paid = false;
  }
  if (ScheduleRetry(operation, outcome)) return;
  EndOperation(*operation, std::move(outcome));
}

bool RetryingStore::ScheduleRetry(const std::shared_ptr<Operation>& operation,
                                  ReadOutcome& outcome) {
  if (operation->differed == kDiffersMax) return false;
  const MonotonicTime now = clock_.Now();
  const TimeLeft left = LeftOf(*operation, now);
  const std::optional<Duration> wait =
      WaitBeforeRetry(options_, outcome, operation->backoff.Next(), left);
  if (!wait) {
    if (IsWorthAnother(outcome))
      outcome.status = std::move(outcome.status).WithContext(WhyGivenUp(options_, outcome, left));
    return false;
  }
  operation->Waits(true);
  const MutexLock lock(mutex_);
  if (stopping_) return false;
  operation->unasked = false;
  operation->last = outcome;
  waits_.Note(operation.get(), operation->patient_since, outcome.status.message());
  waiting_.emplace(now + *wait, operation);
  changed_.NotifyAll();
  return true;
}

void RetryingStore::EndOperation(Operation& operation, ReadOutcome outcome) {
  outcome.attempts = operation.attempts;
  if (!outcome.status.ok()) {
    outcome.status = std::move(outcome.status)
                         .WithContext(fmt::format("{}: attempt {}", name(), operation.attempts));
  }
  {
    const MutexLock lock(mutex_);
    --in_flight_;
    waits_.Forget(&operation);
    if (outcome.status.ok()) {
      ++counts_.reads;
      counts_.bytes += operation.request.destination.size();
      budget_.OnSuccess();
      GiveBack(operation);
    }
    if (!delayed_.empty()) changed_.NotifyAll();
  }
  operation.done(std::move(outcome));
}

void RetryingStore::GiveBack(Operation& operation) {
  if (operation.paid) budget_.GiveBack();
  operation.paid = false;
}

std::string RetryingStore::WhyNoRetry() const {
  return fmt::format(
      "not tried again: too many reads of this store fail, and the retry budget ({:g} % of the "
      "reads that succeed, and {:g} a second) is empty",
      options_.budget.share_of_successes * 100, options_.budget.floor_per_second);
}

// The operation that goes on next, if it may retry or shall end; null if there is none yet.
std::shared_ptr<RetryingStore::Operation> RetryingStore::TakeDue(bool& may_retry) {
  const MonotonicTime now = clock_.Now();
  if (auto operation = TakeDelayed(now, may_retry)) return operation;
  if (waiting_.empty() || waiting_.begin()->first > now) {
    MonotonicTime next = waiting_.empty() ? now + kIdleRetryWait : waiting_.begin()->first;
    if (!delayed_.empty()) next = std::min(next, now + budget_.UntilNext(now));
    changed_.WaitUntil(mutex_, std::min(next, waits_.tell_at()));
    return nullptr;
  }
  std::shared_ptr<Operation> operation = std::move(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  operation->paid = false;
  may_retry = operation->unasked || IsNoLoad(operation->last.status);
  if (!may_retry) operation->paid = may_retry = delayed_.empty() && budget_.TryTake(now);
  if (may_retry) {
    if (!operation->unasked) ++counts_.retries;
    return operation;
  }
  ++counts_.delayed;
  delayed_.emplace(EndOf(*operation), std::move(operation));
  return nullptr;
}

// Of the operations that wait for the budget, the one that has the least time, if the budget has
// something for it or does not get it in time.
std::shared_ptr<RetryingStore::Operation> RetryingStore::TakeDelayed(MonotonicTime now,
                                                                     bool& may_retry) {
  if (delayed_.empty()) return nullptr;
  may_retry = budget_.TryTake(now);
  if (!may_retry && budget_.UntilNext(now) < Deadline(delayed_.begin()->first).Remaining(now))
    return nullptr;
  std::shared_ptr<Operation> operation = std::move(delayed_.begin()->second);
  delayed_.erase(delayed_.begin());
  operation->paid = may_retry;
  if (may_retry) ++counts_.retries;
  return operation;
}

void RetryingStore::RunRetries() {
  while (true) {
    std::shared_ptr<Operation> operation;
    bool may_retry = false;
    std::optional<StoreWaits> tell;
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      tell = waits_.Tell(clock_.Now());
      if (!tell) operation = TakeDue(may_retry);
    }
    if (tell) LogStoreWaits(name(), *tell, options_.patience);
    if (operation == nullptr) continue;
    if (!may_retry) {
      ReadOutcome outcome = std::move(operation->last);
      outcome.status = std::move(outcome.status).WithContext(WhyNoRetry());
      EndOperation(*operation, std::move(outcome));
      continue;
    }
    operation->Waits(false);
    Status refused = Attempt(operation);
    if (WaitForStore(operation, refused)) continue;
    if (refused.code() == Code::kUnavailable) {
      LogFailure(*operation, refused);
      ReadOutcome outcome = {.status = std::move(refused)};
      TimeLeft left = LeftOf(*operation, clock_.Now());
      if (left.patience <= left.deadline) left.patience = Duration::zero();  // too short to wait
      outcome.status = std::move(outcome.status).WithContext(WhyGivenUp(options_, outcome, left));
      EndOperation(*operation, std::move(outcome));
    } else if (!refused.ok()) {
      EndAttempt(operation, {.status = std::move(refused)});
    }
  }
}

// Between two attempts; false if there shall be no other, and the status says after how many.
bool RetryingStore::SleepBeforeRetry(Call& call, Status& status) {
  const MonotonicTime now = clock_.Now();
  RetryOptions options = options_;
  {
    const MutexLock lock(mutex_);
    waits_.Note(&call, call.began, status.message());
    if (!has_answered_) options.patience = std::min(options.patience, options.first_patience);
  }
  const Deadline patience(call.began + options.patience);
  const TimeLeft left = {.patience = patience.Remaining(now),
                         .deadline = call.deadline.Remaining(now)};
  const std::optional<Duration> wait =
      WaitBeforeRetry(options, {.status = status}, call.backoff.Next(), left);
  const Deadline end(std::min(patience.at(), call.deadline.at()));
  if (wait && SleepUntilRetry(now + *wait, end, status)) return true;
  if (call.attempts > 1) {
    status = std::move(status).WithContext(fmt::format("given up after {} attempts in {:.1f} s",
                                                       call.attempts,
                                                       ToSeconds(clock_.Now() - call.began)));
  }
  return false;
}

bool RetryingStore::SleepUntilRetry(MonotonicTime at, Deadline end, Status& status) {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    const MonotonicTime now = clock_.Now();
    if (now < at) {
      changed_.WaitUntil(mutex_, at);
      continue;
    }
    if (budget_.TryTake(now)) {
      ++counts_.retries;
      return true;
    }
    const Duration wait = budget_.UntilNext(now);
    if (wait >= end.Remaining(now)) {
      ++counts_.delayed;
      status = std::move(status).WithContext(WhyNoRetry());
      return false;
    }
    at = now + wait;
  }
  return false;
}

void RetryingStore::NoteAnswer(const Status& status) {
  if (BreakerEndOf(status.code()) == CircuitBreaker::End::kAnswered) has_answered_ = true;
}

// After an attempt of it: false when another one is due.
template <typename T>
bool RetryingStore::IsEnd(Call& call, Result<T>& result) {
  NoteAnswer(result ? OkStatus() : result.error());
  if (!result && SleepBeforeRetry(call, result.error())) return false;
  const MutexLock lock(mutex_);
  waits_.Forget(&call);
  if (result && call.attempts > 1) budget_.GiveBack();
  if (!delayed_.empty()) changed_.NotifyAll();
  return true;
}

Result<ObjectInfo> RetryingStore::Stat(const std::string& object, Deadline deadline) {
  Call call = {.backoff = Backoff(options_.backoff, NextSeed()),
               .began = clock_.Now(),
               .deadline = deadline};
  while (true) {
    ++call.attempts;
    Result<ObjectInfo> info = inner_->Stat(object, StatDeadline(deadline));
    if (IsEnd(call, info)) return info;
  }
}

Result<ObjectListing> RetryingStore::List(Deadline deadline, const ListProgress& progress) {
  if (!options_.repeats_lists) {
    Result<ObjectListing> listing = inner_->List(deadline, progress);
    NoteAnswer(listing ? OkStatus() : listing.error());
    return listing;
  }
  Call call = {.backoff = Backoff(options_.backoff, NextSeed()),
               .began = clock_.Now(),
               .deadline = deadline};
  while (true) {
    ++call.attempts;
    Result<ObjectListing> listing = inner_->List(deadline, progress);
    if (IsEnd(call, listing)) return listing;
  }
}

void RetryingStore::Shutdown() {
  std::jthread thread;
  std::vector<std::shared_ptr<Operation>> cancelled;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    for (auto* operations : {&waiting_, &delayed_}) {
      for (auto& [time, operation] : *operations)
        cancelled.push_back(std::move(operation));
      operations->clear();
    }
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
  for (const auto& operation : cancelled) {
    EndOperation(*operation, {.status = {Code::kCancelled, Describe(operation->request) +
                                                               ": the store was shut down"}});
  }
  inner_->Shutdown();
}

void RetryingStore::VisitCounters(const CounterVisitor& visit) const {
  inner_->VisitCounters(visit);
  Counts counts;
  size_t in_flight = 0;
  double retries_left = 0;
  StoreWaits waits;
  {
    const MutexLock lock(mutex_);
    counts = counts_;
    in_flight = in_flight_;
    waits = waits_.At(clock_.Now());
    RetryBudget budget = budget_;  // a copy: asking moves it on in time
    retries_left = budget.Balance(clock_.Now());
  }
  const MetricLabels store = {{"store", name()}};
  visit(MetricKind::kCounter, "optcache_store_reads_total", store,
        static_cast<double>(counts.reads));
  visit(MetricKind::kCounter, "optcache_store_read_bytes_total", store,
        static_cast<double>(counts.bytes));
  visit(MetricKind::kCounter, "optcache_store_retries_total", store,
        static_cast<double>(counts.retries));
  visit(MetricKind::kCounter, "optcache_store_retries_delayed_total", store,
        static_cast<double>(counts.delayed));
  visit(MetricKind::kGauge, "optcache_store_retries_left", store, retries_left);
  visit(MetricKind::kGauge, "optcache_store_wait_seconds", store, ToSeconds(waits.longest));
  for (const auto& [code, errors] : counts.errors) {
    visit(MetricKind::kCounter, "optcache_store_errors_total",
          {{"store", name()}, {"code", std::string(CodeName(code))}}, static_cast<double>(errors));
  }
  visit(MetricKind::kGauge, "optcache_store_reads_in_flight", store,
        static_cast<double>(in_flight));
}

}  // namespace optcache::storage
