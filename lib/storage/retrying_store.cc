#include "storage/retrying_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace optcache::storage {
namespace {

constexpr Duration kIdleRetryWait = std::chrono::seconds(10);  // the thread looks around this often

bool MayGetBetter(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kDataLoss ||
         code == Code::kResourceExhausted;
}

}  // namespace

std::optional<Duration> WaitBeforeRetry(const RetryOptions& options, const ReadOutcome& outcome,
                                        AttemptCount attempts, Duration backoff,
                                        Duration until_deadline) {
  if (outcome.status.ok() || !MayGetBetter(outcome.status.code())) return std::nullopt;
  if (attempts.all >= options.attempts_max) return std::nullopt;
  if (outcome.status.code() == Code::kDataLoss &&
      attempts.data_loss >= options.data_loss_attempts_max) {
    return std::nullopt;
  }
  const Duration wait = std::max(backoff, std::min(outcome.retry_after, options.retry_after_max));
  if (wait >= until_deadline) return std::nullopt;
  return wait;
}

// One read with all its attempts. Shared between the inner store's callback and this store, which
// needs it again if the inner store refuses an attempt.
struct RetryingStore::Operation {
  ReadRequest request;
  ReadCallback done;
  Backoff backoff;
  AttemptCount attempts;
  ByteCount filled = 0;  // of the destination, by attempts that ended within the object's bytes
  ReadOutcome last;      // of the attempt before, while it waits for another
  bool delayed = false;  // has found the budget empty
  bool unasked = false;  // the store was taken for gone and has not heard of the last attempt

  void NoteFailure(ReadOutcome& outcome);
};

// The next attempt goes on behind what has come, or begins anew if the rest cannot be had.
void RetryingStore::Operation::NoteFailure(ReadOutcome& outcome) {
  filled += outcome.filled;
  if (outcome.filled > 0) return;
  const Code code = outcome.status.code();
  if (filled > 0 && (code == Code::kInvalidArgument || code == Code::kDataLoss)) {
    filled = 0;
    outcome.status = {Code::kDataLoss, outcome.status.message()};  // a server without ranges, say
  }
  if (outcome.status.code() == Code::kDataLoss) ++attempts.data_loss;
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

Deadline RetryingStore::AttemptDeadline(Deadline whole, ByteCount bytes) const {
  const Duration timeout = options_.attempt_timeout + TransferTimeMax(bytes);
  return Deadline(std::min(whole.at(), clock_.Now() + timeout));
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
                                            .attempts = {},
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
  }
  request.deadline = AttemptDeadline(request.deadline, request.destination.size());
  request.silence_max = options_.attempt_timeout;
  ++operation->attempts.all;
  return inner_->Read(std::move(request), [this, operation](ReadOutcome outcome) {
    EndAttempt(operation, std::move(outcome));
  });
}

// After an attempt that was not made, as the store is taken for gone; false if `refused` says
// something else, or if there is no time left to wait.
bool RetryingStore::WaitForStore(const std::shared_ptr<Operation>& operation,
                                 const Status& refused) {
  if (refused.code() != Code::kUnavailable) return false;
  --operation->attempts.all;
  const MonotonicTime now = clock_.Now();
  const MutexLock lock(mutex_);
  const auto wait =
      std::chrono::duration_cast<Duration>(options_.gone_wait * (0.5 + seeds_.Unit() / 2));
  if (stopping_ || wait >= operation->request.deadline.Remaining(now)) return false;
  operation->unasked = true;
  operation->last = {.status = refused};
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
                .attempt = operation.attempts.all,
                .status = status});
}

void RetryingStore::EndAttempt(const std::shared_ptr<Operation>& operation, ReadOutcome outcome) {
  if (!outcome.status.ok()) {
    operation->NoteFailure(outcome);
    LogFailure(*operation, outcome.status);
    const MutexLock lock(mutex_);
    ++counts_.errors[outcome.status.code()];
  }
  if (ScheduleRetry(operation, outcome)) return;
  EndOperation(*operation, std::move(outcome));
}

bool RetryingStore::ScheduleRetry(const std::shared_ptr<Operation>& operation,
                                  ReadOutcome& outcome) {
  const MonotonicTime now = clock_.Now();
  const Duration left = operation->request.deadline.Remaining(now);
  const std::optional<Duration> wait = WaitBeforeRetry(options_, outcome, operation->attempts,
                                                       operation->backoff.Next(), Duration::max());
  if (!wait) return false;
  if (*wait >= left) {
    outcome.status = std::move(outcome.status).WithContext(WhyTooLate(*wait, left, outcome));
    return false;
  }
  const MutexLock lock(mutex_);
  if (stopping_) return false;
  operation->unasked = false;
  operation->last = outcome;
  waiting_.emplace(now + *wait, operation);
  changed_.NotifyAll();
  return true;
}

void RetryingStore::EndOperation(Operation& operation, ReadOutcome outcome) {
  outcome.attempts = operation.attempts.all;
  if (!outcome.status.ok()) {
    outcome.status = std::move(outcome.status)
                         .WithContext(fmt::format("{}: attempt {} of {}", name(),
                                                  operation.attempts.all, options_.attempts_max));
  }
  {
    const MutexLock lock(mutex_);
    --in_flight_;
    if (outcome.status.ok()) {
      ++counts_.reads;
      counts_.bytes += operation.request.destination.size();
      budget_.OnSuccess();
    }
  }
  operation.done(std::move(outcome));
}

std::string RetryingStore::WhyTooLate(Duration wait, Duration left, const ReadOutcome& outcome) {
  const auto seconds = [](Duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  return fmt::format(
      "not tried again: its deadline comes in {:.1f} s, another attempt in {:.1f} s{}",
      seconds(left), seconds(wait),
      outcome.retry_after > Duration::zero() ? ", as the store asked" : "");
}

std::string RetryingStore::WhyNoRetry() const {
  return fmt::format(
      "not tried again: too many reads of this store fail, and the retry budget ({:g} % of the "
      "reads that succeed, and {:g} a second) is empty",
      options_.budget.share_of_successes * 100, options_.budget.floor_per_second);
}

// The operation that is due next, if it may retry or shall end; null if there is none yet.
std::shared_ptr<RetryingStore::Operation> RetryingStore::TakeDue(bool& may_retry) {
  const MonotonicTime now = clock_.Now();
  const MonotonicTime next = waiting_.empty() ? now + kIdleRetryWait : waiting_.begin()->first;
  if (next > now) {
    changed_.WaitUntil(mutex_, next);
    return nullptr;
  }
  std::shared_ptr<Operation> operation = std::move(waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
  // What the store has not heard of was no load on it.
  may_retry = operation->unasked || operation->last.status.code() == Code::kResourceExhausted ||
              budget_.TryTake(now);
  if (may_retry) {
    if (!operation->unasked) ++counts_.retries;
    return operation;
  }
  if (!operation->delayed) ++counts_.delayed;
  operation->delayed = true;
  const Duration wait = budget_.UntilNext(now);
  if (wait >= operation->request.deadline.Remaining(now)) return operation;
  waiting_.emplace(now + wait, std::move(operation));  // behind those that wait longer
  return nullptr;
}

void RetryingStore::RunRetries() {
  while (true) {
    std::shared_ptr<Operation> operation;
    bool may_retry = false;
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      operation = TakeDue(may_retry);
    }
    if (operation == nullptr) continue;
    if (!may_retry) {
      ReadOutcome outcome = std::move(operation->last);
      outcome.status = std::move(outcome.status).WithContext(WhyNoRetry());
      EndOperation(*operation, std::move(outcome));
      continue;
    }
    Status refused = Attempt(operation);
    if (WaitForStore(operation, refused)) continue;
    if (refused.code() == Code::kUnavailable) {
      LogFailure(*operation, refused);
      EndOperation(*operation, {.status = std::move(refused)});
    } else if (!refused.ok()) {
      EndAttempt(operation, {.status = std::move(refused)});
    }
  }
}

// Between two attempts of Stat or List; false if there shall be no other, and the status says after
// how many.
bool RetryingStore::SleepBeforeRetry(Status& status, unsigned attempts, Backoff& backoff,
                                     Deadline deadline) {
  const MonotonicTime now = clock_.Now();
  const AttemptCount count = {.all = attempts, .data_loss = attempts};
  RetryOptions options = options_;
  options.attempts_max = options.call_attempts_max;
  const std::optional<Duration> wait =
      WaitBeforeRetry(options, {.status = status}, count, backoff.Next(), deadline.Remaining(now));
  if (wait && SleepUntilRetry(now + *wait, deadline, status)) return true;
  if (attempts > 1) {
    status = std::move(status).WithContext(
        fmt::format("attempt {} of {}", attempts, options.attempts_max));
  }
  return false;
}

bool RetryingStore::SleepUntilRetry(MonotonicTime at, Deadline deadline, Status& status) {
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
    if (wait >= deadline.Remaining(now)) {
      ++counts_.delayed;
      status = std::move(status).WithContext(WhyNoRetry());
      return false;
    }
    at = now + wait;
  }
  return false;
}

Result<ObjectInfo> RetryingStore::Stat(const std::string& object, Deadline deadline) {
  Backoff backoff(options_.backoff, NextSeed());
  for (unsigned attempts = 1;; ++attempts) {
    Result<ObjectInfo> info = inner_->Stat(object, AttemptDeadline(deadline, 0));
    if (info || !SleepBeforeRetry(info.error(), attempts, backoff, deadline)) return info;
  }
}

Result<ObjectListing> RetryingStore::List(Deadline deadline, const ListProgress& progress) {
  if (!options_.repeats_lists) return inner_->List(deadline, progress);
  Backoff backoff(options_.backoff, NextSeed());
  for (unsigned attempts = 1;; ++attempts) {
    Result<ObjectListing> listing = inner_->List(deadline, progress);
    if (listing || !SleepBeforeRetry(listing.error(), attempts, backoff, deadline)) return listing;
  }
}

void RetryingStore::Shutdown() {
  std::jthread thread;
  std::vector<std::shared_ptr<Operation>> cancelled;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
    for (auto& [time, operation] : waiting_)
      cancelled.push_back(std::move(operation));
    waiting_.clear();
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
  {
    const MutexLock lock(mutex_);
    counts = counts_;
    in_flight = in_flight_;
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
  for (const auto& [code, errors] : counts.errors) {
    visit(MetricKind::kCounter, "optcache_store_errors_total",
          {{"store", name()}, {"code", std::string(CodeName(code))}}, static_cast<double>(errors));
  }
  visit(MetricKind::kGauge, "optcache_store_reads_in_flight", store,
        static_cast<double>(in_flight));
}

}  // namespace optcache::storage
