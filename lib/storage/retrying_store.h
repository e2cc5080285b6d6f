#pragma once

#include <array>
#include <map>
#include <memory>
#include <thread>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "storage/failed_read_log.h"
#include "storage/object_store.h"
#include "storage/retry_budget.h"

namespace optcache::storage {

struct RetryOptions {
  unsigned attempts_max = 8;  // over 6 s at least: a store that is gone is known as gone before
  unsigned call_attempts_max = 5;       // of Stat and List, whose callers want to know soon
  unsigned data_loss_attempts_max = 2;  // a broken answer is asked for once more
  // Of an attempt, beside what its bytes may take (TransferTimeMax), and of silence within it.
  Duration attempt_timeout = std::chrono::seconds(30);
  Duration retry_after_max = std::chrono::seconds(60);  // a Retry-After beyond it is taken for this
  BackoffOptions backoff;
  bool repeats_lists = true;  // false: the inner store asks again itself for what fails
  Duration gone_wait = std::chrono::seconds(1);  // between questions whether a store is back
  RetryBudgetOptions budget;                     // of all reads together
  size_t reads_max = 4096;                       // accepted and not yet ended
  std::uint64_t seed = 0;                        // of the jitter
};

// What came of the attempts so far; a broken answer that filled a part of the destination is not
// one of data_loss.
struct AttemptCount {
  unsigned all = 0;
  unsigned data_loss = 0;
};

// How long to wait before the next attempt, or nothing if `outcome` is final: its code does not get
// better by itself, the attempts are used up, or the wait (`backoff`, or what the store asks for if
// that is longer) would not end before the deadline.
std::optional<Duration> WaitBeforeRetry(const RetryOptions& options, const ReadOutcome& outcome,
                                        AttemptCount attempts, Duration backoff,
                                        Duration until_deadline);

// Gives reads, Stat and List of another store more than one attempt, and counts. A final error
// names store, object, range, attempt and cause, and so does the log for attempts that failed. Each
// attempt has its own, shorter deadline, so that one that hangs leaves time for another, and goes
// on where the one before ended if that is sure to be the same version. Where most reads fail,
// retries wait for the budget that all of them share; one that would find none before its deadline
// ends, and its error says so. Reads that the inner store refuses with kUnavailable, since it takes
// the store for gone, wait for it until their deadline: that is no attempt. So the longest outage
// that readers do not notice but by waiting is what their deadlines allow. Callbacks run on the
// inner store's threads or on this one's own.
class RetryingStore final : public ObjectStore {
 public:
  RetryingStore(std::unique_ptr<ObjectStore> inner, RetryOptions options,
                const Clock& clock = SystemClock());
  ~RetryingStore() override;

  const std::string& name() const override { return inner_->name(); }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;
  StoreHealth Health() const override { return inner_->Health(); }

 private:
  struct Operation;
  struct Counts {
    std::uint64_t reads = 0;  // that succeeded
    std::uint64_t bytes = 0;
    std::uint64_t retries = 0;
    std::uint64_t delayed = 0;             // retries that found the budget empty, each counted once
    std::map<Code, std::uint64_t> errors;  // attempts that failed
  };

  Status Attempt(const std::shared_ptr<Operation>& operation);
  void EndAttempt(const std::shared_ptr<Operation>& operation, ReadOutcome outcome);
  void LogFailure(const Operation& operation, const Status& status);
  bool WaitForStore(const std::shared_ptr<Operation>& operation, const Status& refused);
  bool ScheduleRetry(const std::shared_ptr<Operation>& operation, ReadOutcome& outcome);
  void EndOperation(Operation& operation, ReadOutcome outcome);
  void RunRetries();
  std::shared_ptr<Operation> TakeDue(bool& may_retry) REQUIRES(mutex_);
  std::string WhyNoRetry() const;
  static std::string WhyTooLate(Duration wait, Duration left, const ReadOutcome& outcome);
  Deadline AttemptDeadline(Deadline whole, ByteCount bytes) const;
  bool SleepBeforeRetry(Status& status, unsigned attempts, Backoff& backoff, Deadline deadline);
  bool SleepUntilRetry(MonotonicTime at, Deadline deadline, Status& status);
  std::uint64_t NextSeed();

  const std::unique_ptr<ObjectStore> inner_;
  const RetryOptions options_;
  const Clock& clock_;
  FailedReadLog failed_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Random seeds_ GUARDED_BY(mutex_);
  size_t in_flight_ GUARDED_BY(mutex_) = 0;
  Counts counts_ GUARDED_BY(mutex_);
  RetryBudget budget_ GUARDED_BY(mutex_);
  // Operations between two attempts, by the time of the next.
  std::multimap<MonotonicTime, std::shared_ptr<Operation>> waiting_ GUARDED_BY(mutex_);
  std::jthread thread_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage
