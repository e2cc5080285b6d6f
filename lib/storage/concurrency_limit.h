#pragma once

// How many requests a store gets at a time: as many as allowed while all is well, fewer when it
// says that it cannot keep up, and slowly more again.
//
// Additive increase, multiplicative decrease, as TCP's congestion control (Chiu and Jain 1989;
// Jacobson 1988): clients that know nothing of one another settle at equal shares of what the store
// carries. As in NewReno (RFC 6582), trouble of requests that were sent before the last decrease is
// no news: there is one decrease a round trip at most.

#include <cstdint>

namespace optcache::storage {

struct ConcurrencyOptions {
  unsigned max = 64;             // of requests at a time; also the beginning. 1 at least
  double decrease_factor = 0.7;  // of the limit, when the store is overloaded
};

// Not thread-safe: a value with one owner.
class ConcurrencyLimit {
 public:
  enum class End {
    kAnswered,    // the store did its work, be it with an error that is no fault of its load
    kOverloaded,  // 5xx, 429, no connection, no answer in time
    kUnknown,     // given up by us: says nothing of the store
  };
  using Ticket = std::uint64_t;

  explicit ConcurrencyLimit(ConcurrencyOptions options);

  bool MayStart() const { return running_ < limit(); }
  // Of a request that is sent now, for OnEnd.
  Ticket OnStart();
  void OnEnd(Ticket ticket, End end);

  unsigned limit() const { return static_cast<unsigned>(limit_); }  // 1 to max
  unsigned running() const { return running_; }
  std::uint64_t decreases() const { return decreases_; }

 private:
  ConcurrencyOptions options_;
  double limit_;
  unsigned running_ = 0;
  std::uint64_t decreases_ = 0;
};

}  // namespace optcache::storage
