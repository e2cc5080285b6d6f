#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "storage/failed_read_log.h"
#include "storage/object_store.h"
#include "storage/retry_budget.h"
#include "storage/retry_wait.h"
#include "storage/wait_table.h"

namespace optcache::storage {

// Gives reads, Stat and List of another store as many attempts as patience allows, and counts. What
// cannot pass (kNotFound, kConflict and so on) ends at once; what comes with another checksum than
// the store tells is read once more, past caches; reads wait for new keys where the old have
// expired. A final error names store, object, range, attempt and cause, and so does the log
// for attempts that failed; while requests wait, a line every ten seconds says for what and since
// when. An attempt ends by silence, so that one that hangs leaves time for another, and goes on
// where the one before ended if that is sure to be the same version; then patience begins again,
// unless what had come was thrown away once. Where most reads fail, retries wait for the budget
// that all of them share, and the read goes first whose patience ends first; one that would find
// none in time ends, and its error says so. A retry that succeeds costs nothing. Reads that
// the inner store refuses with kUnavailable, since it takes the store for gone, wait for it: that
// is no attempt. So readers notice an outage that is shorter than patience by waiting alone.
// Callbacks run on the inner store's threads or on this one's own.
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
  StoreWaits Waits() const override;
  RateUse Rates() override { return inner_->Rates(); }
  void SetRates(const StoreRates& rates) override { inner_->SetRates(rates); }

 private:
  struct Operation;
  struct Call;
  struct Counts {
    std::uint64_t reads = 0;  // that succeeded
    std::uint64_t bytes = 0;
    std::uint64_t retries = 0;
    std::uint64_t delayed = 0;             // retries that found the budget empty
    std::map<Code, std::uint64_t> errors;  // attempts that failed
  };

  Status Attempt(const std::shared_ptr<Operation>& operation);
  void EndAttempt(const std::shared_ptr<Operation>& operation, ReadOutcome outcome);
  void LogFailure(const Operation& operation, const Status& status);
  bool WaitForStore(const std::shared_ptr<Operation>& operation, const Status& refused);
  bool ScheduleRetry(const std::shared_ptr<Operation>& operation, ReadOutcome& outcome);
  void EndOperation(Operation& operation, ReadOutcome outcome);
  void GiveBack(Operation& operation) REQUIRES(mutex_);
  void RunRetries();
  std::shared_ptr<Operation> TakeDue(bool& may_retry) REQUIRES(mutex_);
  std::shared_ptr<Operation> TakeDelayed(MonotonicTime now, bool& may_retry) REQUIRES(mutex_);
  std::string WhyNoRetry() const;
  TimeLeft LeftOf(const Operation& operation, MonotonicTime now) const;
  MonotonicTime EndOf(const Operation& operation) const;
  Deadline StatDeadline(Deadline whole) const;
  template <typename T>
  bool IsEnd(Call& call, Result<T>& result);
  bool SleepBeforeRetry(Call& call, Status& status);
  bool SleepUntilRetry(MonotonicTime at, Deadline end, Status& status);
  void NoteAnswer(const Status& status);
  std::uint64_t NextSeed();

  const std::unique_ptr<ObjectStore> inner_;
  const RetryOptions options_;
  const Clock& clock_;
  FailedReadLog failed_;
  std::atomic<bool> has_answered_ = false;  // the store has, be it by an error

  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Random seeds_ GUARDED_BY(mutex_);
  size_t in_flight_ GUARDED_BY(mutex_) = 0;
  Counts counts_ GUARDED_BY(mutex_);
  RetryBudget budget_ GUARDED_BY(mutex_);
  WaitTable waits_ GUARDED_BY(mutex_);
  // Operations between two attempts, by the time of the next.
  std::multimap<MonotonicTime, std::shared_ptr<Operation>> waiting_ GUARDED_BY(mutex_);
  // Those whose time has come, but that wait for the budget, by when their patience or time ends.
  std::multimap<MonotonicTime, std::shared_ptr<Operation>> delayed_ GUARDED_BY(mutex_);
  std::jthread thread_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage
