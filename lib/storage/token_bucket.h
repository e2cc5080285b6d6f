#pragma once

// How much may be done now, where it comes in by time, by other events, or both: the budgets and
// limits of requests to a store. A pure state: the caller says what time it is.

#include "base/clock.h"

namespace optcache::storage {

struct TokenBucketOptions {
  double capacity = 0;    // more are never saved up
  double per_second = 0;  // come in by themselves; 0: none do
  double initial = 0;     // there at the beginning, `capacity` at most
};

// The balance may be below zero: what was taken on credit comes in first. Not thread-safe: a value
// with one owner. Times that go back are taken for the last one.
class TokenBucket {
 public:
  explicit TokenBucket(TokenBucketOptions options);

  void Add(double tokens);
  // False, and nothing is taken, if fewer are there.
  bool TryTake(double tokens, MonotonicTime now);
  // Takes them, on credit if need be.
  void Take(double tokens, MonotonicTime now);
  // How long until that many are there, if time alone brings them; Duration::max() if it never
  // does. Rounded up to a nanosecond, so that they are there then.
  Duration Until(double tokens, MonotonicTime now);
  double Balance(MonotonicTime now);
  // From now on. What is there stays, as far as the capacity goes.
  void SetRate(double capacity, double per_second, MonotonicTime now);

 private:
  void Advance(MonotonicTime now);

  TokenBucketOptions options_;
  double tokens_;
  MonotonicTime at_{};
};

}  // namespace optcache::storage
