#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/internal/alarm_thread.h"
#include "storage/object_store.h"
#include "storage/request_gate.h"

namespace optcache::storage {

struct LimitingOptions {
  RequestGateOptions gate;
  size_t waiting_max = 4096;  // reads and Stats that wait for their turn
};

// Lets through to another store what the gate allows; the rest waits its turn, first come, first
// served. What is sent is what the store gets: this stands directly before a back end, so that
// retries and hedges pass it, too. A read whose deadline comes before its turn ends with
// kResourceExhausted and says why it waited; the store has not heard of it. List passes unhindered.
// Callbacks run on the inner store's threads or on this one's own.
class LimitingStore final : public ObjectStore {
 public:
  // `clock` must be the machine's, as for all that waits.
  LimitingStore(std::unique_ptr<ObjectStore> inner, LimitingOptions options,
                const Clock& clock = SystemClock());
  ~LimitingStore() override;

  const std::string& name() const override { return inner_->name(); }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;
  RateUse Rates() override;
  void SetRates(const StoreRates& rates) override;

  // True if a request that is made now would be sent at once.
  bool HasRoom();

 private:
  using Ticket = RequestGate::Ticket;
  // It is its turn (ok), or will never be.
  using Turn = std::move_only_function<void(Status turn, Ticket ticket)>;
  struct Waiting {
    Deadline deadline;
    ByteCount bytes = 0;
    Turn turn;
  };
  // A turn that has come, to be told without the lock.
  struct Told {
    Turn turn;
    Status status;
    Ticket ticket = 0;
  };
  struct Operation;

  Result<std::optional<Ticket>> Enter(Deadline deadline, ByteCount bytes, Turn turn);
  Status Send(const std::shared_ptr<Operation>& operation, Ticket ticket);
  void End(Ticket ticket, const Status& status, Duration retry_after);
  void TakeExpired(MonotonicTime now, std::vector<Told>& told) REQUIRES(mutex_);
  std::vector<Told> TakeTurns(MonotonicTime now) REQUIRES(mutex_);
  void NoteHeldBack(MonotonicTime now) REQUIRES(mutex_);
  MonotonicTime NextLook(MonotonicTime now) REQUIRES(mutex_);
  MonotonicTime Look(MonotonicTime now);

  const std::unique_ptr<ObjectStore> inner_;
  const LimitingOptions options_;
  const Clock& clock_;

  mutable Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  RequestGate gate_ GUARDED_BY(mutex_);
  std::uint64_t held_by_requests_ GUARDED_BY(mutex_) = 0;
  std::uint64_t held_by_bytes_ GUARDED_BY(mutex_) = 0;
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  // None that waits has an earlier deadline.
  MonotonicTime earliest_ GUARDED_BY(mutex_) = MonotonicTime::max();
  internal::AlarmThread alarm_;
};

}  // namespace optcache::storage
