#pragma once

#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/circuit_breaker.h"
#include "storage/object_store.h"

namespace optcache::storage {

inline constexpr Duration kStaleAfter = std::chrono::minutes(1);

// Does not ask another store while it is taken for gone (circuit_breaker.h): Read, Stat and List
// are then refused at once with kUnavailable, which says since when nothing was answered, why, and
// when it will be tried again. One log line when the store is given up, one when it is back.
// Callbacks run on the inner store's threads.
class BreakingStore final : public ObjectStore {
 public:
  BreakingStore(std::unique_ptr<ObjectStore> inner, CircuitBreakerOptions options,
                const Clock& clock = SystemClock());
  ~BreakingStore() override;

  const std::string& name() const override { return inner_->name(); }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;
  // One that is taken for gone, and that nobody has asked for kStaleAfter though they might have,
  // counts as not tried: it may be back.
  StoreHealth Health() const override;
  RateUse Rates() override { return inner_->Rates(); }
  void SetRates(const StoreRates& rates) override { inner_->SetRates(rates); }

 private:
  Result<CircuitBreaker::Request> Start();
  void End(CircuitBreaker::Request request, const Status& status);

  const std::unique_ptr<ObjectStore> inner_;
  const Clock& clock_;

  mutable Mutex mutex_;
  CircuitBreaker breaker_ GUARDED_BY(mutex_);
  std::string last_failure_ GUARDED_BY(mutex_);
  bool has_answered_ GUARDED_BY(mutex_) = false;
};

}  // namespace optcache::storage
