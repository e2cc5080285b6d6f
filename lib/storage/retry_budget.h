#pragma once

// How many retries all requests of a store may make together. Each request alone waits longer from
// one retry to the next, but when every request fails, the retries of all are a load on a store
// that cannot carry the requests alone.
//
// A token bucket: each success pays for a share of a retry, a floor comes in by time, so that few
// requests can be tried again as well, and what was saved is bounded. Sources: Finagle's
// RetryBudget (Twitter, 2016: 20 % of requests, 10 a second, saved for 10 s) and gRPC's retry
// throttling (proposal A6, 2017: a token ratio a success). Unlike there, a retry that succeeds gets
// its token back: it was no load in vain, and after an outage all reads are retries.

#include "base/clock.h"
#include "storage/token_bucket.h"

namespace optcache::storage {

struct RetryBudgetOptions {
  double share_of_successes = 0.1;
  double floor_per_second = 5;
  double saved_max = 100;  // also what is there at the beginning
};

// Not thread-safe: a value with one owner.
class RetryBudget {
 public:
  explicit RetryBudget(RetryBudgetOptions options);

  void OnSuccess();
  // Of a retry that has succeeded after all, or was not sent.
  void GiveBack();
  // False if no retry is left now.
  bool TryTake(MonotonicTime now);
  // How long until the floor brings one; zero if one is there.
  Duration UntilNext(MonotonicTime now);
  double Balance(MonotonicTime now);

 private:
  RetryBudgetOptions options_;
  TokenBucket bucket_;
};

}  // namespace optcache::storage
