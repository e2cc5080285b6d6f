#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/hedge_policy.h"
#include "storage/internal/alarm_thread.h"
#include "storage/object_store.h"

namespace optcache::storage {

// Asks another store once more for what is late (hedge_policy.h); the first answer that is good
// counts. The second request reads into memory of its own, which is copied when it wins; before
// that, the first is stopped from writing to the destination, so the inner store must fill
// destinations by DestinationWriter, as network stores do. An error that a second request would
// meet as well, such as kNotFound, ends the read at once; otherwise both must fail, and the message
// says so. Stat and List pass. Callbacks run on the inner store's threads or on this one's own.
class HedgingStore final : public ObjectStore {
 public:
  // `has_room` says whether a request beside the others would be sent at once: it may be called
  // from any thread, until Shutdown. `clock` must be the machine's.
  HedgingStore(std::unique_ptr<ObjectStore> inner, HedgeOptions options,
               std::function<bool()> has_room, const Clock& clock = SystemClock());
  ~HedgingStore() override;

  const std::string& name() const override { return inner_->name(); }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;
  RateUse Rates() override { return inner_->Rates(); }
  void SetRates(const StoreRates& rates) override { inner_->SetRates(rates); }

 private:
  struct Race;
  using RacePtr = std::shared_ptr<Race>;  // of both requests, and of the alarm while it is not late

  void OnFirst(const RacePtr& race, ReadOutcome outcome);
  void OnSecond(const RacePtr& race, ReadOutcome outcome);
  void Finish(const RacePtr& race) REQUIRES(mutex_);
  std::vector<RacePtr> TakeLate(MonotonicTime now, bool has_room) REQUIRES(mutex_);
  void StartSecond(const RacePtr& race);
  MonotonicTime Look(MonotonicTime now);

  const std::unique_ptr<ObjectStore> inner_;
  const std::function<bool()> has_room_;
  const Clock& clock_;

  mutable Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  HedgePolicy policy_ GUARDED_BY(mutex_);
  std::multimap<MonotonicTime, RacePtr> not_late_ GUARDED_BY(mutex_);  // by when they will be
  std::list<RacePtr> late_ GUARDED_BY(mutex_);  // not hedged yet, the oldest first
  std::uint64_t won_ GUARDED_BY(mutex_) = 0;    // hedges that came first
  std::uint64_t lost_ GUARDED_BY(mutex_) = 0;   // that did not, or failed
  internal::AlarmThread alarm_;
};

}  // namespace optcache::storage
