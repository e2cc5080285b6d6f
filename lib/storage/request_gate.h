#pragma once

// When a request may be sent to a store: when fewer run than the store carries
// (concurrency_limit.h), not before the time that it asked for by Retry-After, and no faster than
// its user wants. A pure state: the caller says what time it is; limiting_store.h does as it
// says.

#include <optional>

#include "base/clock.h"
#include "storage/concurrency_limit.h"
#include "storage/object_store.h"
#include "storage/token_bucket.h"

namespace optcache::storage {

// What a process may ask of a store. 0: as much as it likes. What is not used is saved up for a
// second; a request that is larger than a second's bytes goes, and the next ones wait for it.
struct StoreRates {
  double requests_per_second = 0;
  double bytes_per_second = 0;
};

struct RequestGateOptions {
  ConcurrencyOptions concurrency;
  Duration closed_max = std::chrono::seconds(60);  // a Retry-After beyond it is taken for this
  StoreRates rates;
};

// Not thread-safe: a value with one owner.
class RequestGate {
 public:
  explicit RequestGate(RequestGateOptions options);

  bool MayStart(MonotonicTime now);
  // When time alone will open it; nothing if it is open, or waits for a request to end.
  std::optional<MonotonicTime> OpensAt(MonotonicTime now);

  using Ticket = ConcurrencyLimit::Ticket;
  Ticket OnStart(ByteCount bytes, MonotonicTime now);
  void OnEnd(Ticket ticket, const Status& status, Duration retry_after, MonotonicTime now);

  // "3 of 64 requests at a time, 100 a second, none for 12 s": what is in force, for messages.
  std::string Describe(MonotonicTime now) const;
  const ConcurrencyLimit& concurrency() const { return concurrency_; }

 private:
  MonotonicTime NotBefore(MonotonicTime now);

  RequestGateOptions options_;
  ConcurrencyLimit concurrency_;
  std::optional<TokenBucket> requests_;
  std::optional<TokenBucket> bytes_;
  MonotonicTime closed_until_{};
};

}  // namespace optcache::storage
