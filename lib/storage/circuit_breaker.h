#pragma once

// Whether a store is worth asking. One that has answered nothing for a while is taken for gone:
// requests are refused at once, and now and then one is let through as a probe. Who asks for
// readers waits (retrying_store.h), so that a store that is gone ends no training.
//
// The pattern is Nygard's ("Release It!", 2007): closed, open, half open. Here it opens only for a
// store that answers nothing at all, by number and by time; one that errs often is the business of
// the retry budget and of the concurrency limit.

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/status.h"

namespace optcache::storage {

struct CircuitBreakerOptions {
  unsigned failures_min = 5;                       // in a row, and
  Duration failing_min = std::chrono::seconds(2);  // for this long without an answer
  Duration first_wait = std::chrono::seconds(1);   // until a probe; doubles with each that fails
  Duration wait_max = std::chrono::seconds(10);
};

// Not thread-safe: a value with one owner.
class CircuitBreaker {
 public:
  enum class State { kClosed, kHalfOpen, kOpen };
  enum class Request { kRegular, kProbe };
  // What became of a request that was let through.
  enum class End {
    kAnswered,  // be it with an error about the request: the store is there
    kFailed,    // 5xx, no connection, no answer in time
    kUnknown,   // given up by us before the store had a say
  };

  explicit CircuitBreaker(CircuitBreakerOptions options) : options_(options) {}

  // As what a request may be sent now, for which OnEnd is due; nothing if it may not. When open,
  // the first to ask after the wait is the probe, and others wait for what becomes of it.
  std::optional<Request> Start(MonotonicTime now);
  // True if it opened or closed.
  bool OnEnd(Request request, End end, MonotonicTime now);

  State state() const { return state_; }
  // While it is not closed: when the next probe may be made, and since when nothing was answered.
  MonotonicTime probe_at() const { return probe_at_; }
  MonotonicTime failing_since() const { return failing_since_; }
  std::uint64_t times_opened() const { return times_opened_; }

 private:
  void OnFailedProbe(End end, MonotonicTime now);
  void OnFailure(MonotonicTime now);

  CircuitBreakerOptions options_;
  State state_ = State::kClosed;
  unsigned failures_ = 0;  // in a row
  MonotonicTime failing_since_{};
  Duration wait_{};
  MonotonicTime probe_at_{};
  std::uint64_t times_opened_ = 0;
};

// What an attempt that ended so says of the store.
CircuitBreaker::End BreakerEndOf(Code code);

}  // namespace optcache::storage
