#pragma once

// What of a store is waited for, for those who wonder why nothing goes on.

#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "storage/object_store.h"

namespace optcache::storage {

// The requests of a store that have failed and are tried again. Not thread-safe: a value with one
// owner.
class WaitTable {
 public:
  static constexpr Duration kTellEvery = std::chrono::seconds(10);

  // `who` tells requests apart; it is not looked into. `since` is when it last got something, or
  // began; `cause` is why its last attempt failed.
  void Note(const void* who, MonotonicTime since, std::string cause);
  // It has ended, or is well again. One that is not here is no fault.
  void Forget(const void* who) { waiting_.erase(who); }

  StoreWaits At(MonotonicTime now) const;
  // What to say now: once in kTellEvery while a request has waited for as long.
  std::optional<StoreWaits> Tell(MonotonicTime now);
  // When to ask for that; the end of time if nothing waits.
  MonotonicTime tell_at() const { return waiting_.empty() ? MonotonicTime::max() : quiet_until_; }

 private:
  struct Entry {
    MonotonicTime since;
    std::string cause;
  };
  const Entry* Longest() const;

  std::unordered_map<const void*, Entry> waiting_;
  MonotonicTime quiet_until_{};
};

// The line of the log for what Tell gives. `patience` is that of the requests.
void LogStoreWaits(const std::string& store, const StoreWaits& waits, Duration patience);

}  // namespace optcache::storage
