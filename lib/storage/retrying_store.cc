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
  const Duration wait = std::max(backoff, outcome.retry_after);
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
};

RetryingStore::RetryingStore(std::unique_ptr<ObjectStore> inner, RetryOptions options,
                             const Clock& clock)
    : inner_(std::move(inner)), options_(options), clock_(clock), seeds_(options.seed) {
  const MutexLock lock(mutex_);
  thread_ = std::jthread([this] { RunRetries(); });
}

RetryingStore::~RetryingStore() {
  Shutdown();
}

Deadline RetryingStore::AttemptDeadline(Deadline whole) const {
  return Deadline(std::min(whole.at(), clock_.Now() + options_.attempt_timeout));
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
                                            .attempts = {}});
  Status accepted = Attempt(operation);
  if (!accepted.ok()) {
    const MutexLock lock(mutex_);
    --in_flight_;
  }
  return accepted;
}

Status RetryingStore::Attempt(const std::shared_ptr<Operation>& operation) {
  ReadRequest request = operation->request;
  request.deadline = AttemptDeadline(request.deadline);
  ++operation->attempts.all;
  return inner_->Read(std::move(request), [this, operation](ReadOutcome outcome) {
    EndAttempt(operation, std::move(outcome));
  });
}

void RetryingStore::EndAttempt(const std::shared_ptr<Operation>& operation, ReadOutcome outcome) {
  if (outcome.status.code() == Code::kDataLoss) ++operation->attempts.data_loss;
  if (!outcome.status.ok()) {
    const MutexLock lock(mutex_);
    ++counts_.errors[outcome.status.code()];
  }
  if (ScheduleRetry(operation, outcome)) return;
  EndOperation(*operation, std::move(outcome));
}

bool RetryingStore::ScheduleRetry(const std::shared_ptr<Operation>& operation,
                                  const ReadOutcome& outcome) {
  const MonotonicTime now = clock_.Now();
  const std::optional<Duration> wait =
      WaitBeforeRetry(options_, outcome, operation->attempts, operation->backoff.Next(),
                      operation->request.deadline.Remaining(now));
  if (!wait) return false;
  const MutexLock lock(mutex_);
  if (stopping_) return false;
  ++counts_.retries;
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
    }
  }
  operation.done(std::move(outcome));
}

void RetryingStore::RunRetries() {
  while (true) {
    std::shared_ptr<Operation> operation;
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
      const MonotonicTime now = clock_.Now();
      const MonotonicTime next = waiting_.empty() ? now + kIdleRetryWait : waiting_.begin()->first;
      if (next > now) {
        changed_.WaitUntil(mutex_, next);
        continue;
      }
      operation = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
    }
    if (Status refused = Attempt(operation); !refused.ok()) {
      EndAttempt(operation, {.status = std::move(refused)});
    }
  }
}

// Between two attempts of Stat or List; false if there shall be no other.
bool RetryingStore::SleepBeforeRetry(const Status& status, unsigned attempts, Backoff& backoff,
                                     Deadline deadline) {
  const MonotonicTime now = clock_.Now();
  const AttemptCount count = {.all = attempts, .data_loss = attempts};
  const std::optional<Duration> wait =
      WaitBeforeRetry(options_, {.status = status}, count, backoff.Next(), deadline.Remaining(now));
  if (!wait) return false;
  const MutexLock lock(mutex_);
  while (!stopping_ && clock_.Now() < now + *wait)
    changed_.WaitUntil(mutex_, now + *wait);
  return !stopping_;
}

Result<ObjectInfo> RetryingStore::Stat(const std::string& object, Deadline deadline) {
  Backoff backoff(options_.backoff, NextSeed());
  for (unsigned attempts = 1;; ++attempts) {
    Result<ObjectInfo> info = inner_->Stat(object, AttemptDeadline(deadline));
    if (info || !SleepBeforeRetry(info.error(), attempts, backoff, deadline)) return info;
  }
}

Result<ObjectListing> RetryingStore::List(Deadline deadline, const ListProgress& progress) {
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
  {
    const MutexLock lock(mutex_);
    counts = counts_;
    in_flight = in_flight_;
  }
  const MetricLabels store = {{"store", name()}};
  visit(MetricKind::kCounter, "optcache_store_reads_total", store,
        static_cast<double>(counts.reads));
  visit(MetricKind::kCounter, "optcache_store_read_bytes_total", store,
        static_cast<double>(counts.bytes));
  visit(MetricKind::kCounter, "optcache_store_retries_total", store,
        static_cast<double>(counts.retries));
  for (const auto& [code, errors] : counts.errors) {
    visit(MetricKind::kCounter, "optcache_store_errors_total",
          {{"store", name()}, {"code", std::string(CodeName(code))}}, static_cast<double>(errors));
  }
  visit(MetricKind::kGauge, "optcache_store_reads_in_flight", store,
        static_cast<double>(in_flight));
}

}  // namespace optcache::storage
