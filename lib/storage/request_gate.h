#pragma once

// When a request may be sent to a store: when fewer run than the store carries
// (concurrency_limit.h), not before the time that it asked for by Retry-After, and no faster than
// its user wants. A pure state: the caller says what time it is; limiting_store.h does as it
// says.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "storage/concurrency_limit.h"
#include "storage/object_store.h"
#include "storage/token_bucket.h"

namespace optcache::storage {

struct RequestGateOptions {
  ConcurrencyOptions concurrency;
  Duration closed_max = std::chrono::seconds(60);  // a Retry-After beyond it is taken for this
  // What is not used is saved up for a second; a request that is larger than a second's bytes goes,
  // and the next ones wait for it.
  StoreRates rates;
};

// Not thread-safe: a value with one owner.
class RequestGate {
 public:
  explicit RequestGate(RequestGateOptions options);

  bool MayStart(MonotonicTime now);
  // When time alone will open it; nothing if it is open, or waits for a request to end.
  std::optional<MonotonicTime> OpensAt(MonotonicTime now);

  // From now on at most these, and never more than it was made with. What was made without a rate
  // stays without; 0: as it was made.
  void SetRates(const StoreRates& rates, MonotonicTime now);
  const StoreRates& rates() const { return in_force_; }

  // Which of the rates a request has to wait for now, where nothing else is in its way and the rate
  // is lower than the gate was made with: so it could be higher.
  struct HeldBack {
    bool by_requests = false;
    bool by_bytes = false;
  };
  HeldBack HeldBackBy(MonotonicTime now);

  using Ticket = ConcurrencyLimit::Ticket;
  Ticket OnStart(ByteCount bytes, MonotonicTime now);
  void OnEnd(Ticket ticket, const Status& status, Duration retry_after, MonotonicTime now);

  // "3 of 64 requests at a time, 100 a second, none for 12 s": what is in force, for messages.
  std::string Describe(MonotonicTime now) const;
  const ConcurrencyLimit& concurrency() const { return concurrency_; }
  // So far.
  std::uint64_t started() const { return started_; }
  ByteCount started_bytes() const { return started_bytes_; }

 private:
  MonotonicTime NotBefore(MonotonicTime now);

  RequestGateOptions options_;
  StoreRates in_force_;
  ConcurrencyLimit concurrency_;
  std::optional<TokenBucket> requests_;
  std::optional<TokenBucket> bytes_;
  MonotonicTime closed_until_{};
  std::uint64_t started_ = 0;
  ByteCount started_bytes_ = 0;
};

}  // namespace optcache::storage
