#include "storage/circuit_breaker.h"

#include <algorithm>

namespace optcache::storage {

std::optional<CircuitBreaker::Request> CircuitBreaker::Start(MonotonicTime now) {
  if (state_ == State::kClosed) return Request::kRegular;
  if (state_ == State::kHalfOpen || now < probe_at_) return std::nullopt;
  state_ = State::kHalfOpen;
  return Request::kProbe;
}

bool CircuitBreaker::OnEnd(Request request, End end, MonotonicTime now) {
  const bool was_closed = state_ == State::kClosed;
  if (end == End::kAnswered) {
    state_ = State::kClosed;  // also by one from before it opened: the store is there
    failures_ = 0;
  } else if (request == Request::kProbe && state_ == State::kHalfOpen) {
    OnFailedProbe(end, now);
  } else if (was_closed && end == End::kFailed) {
    OnFailure(now);
  }
  return was_closed != (state_ == State::kClosed);
}

void CircuitBreaker::OnFailedProbe(End end, MonotonicTime now) {
  if (end == End::kFailed) wait_ = std::min(wait_ * 2, options_.wait_max);
  state_ = State::kOpen;
  probe_at_ = now + wait_;
}

void CircuitBreaker::OnFailure(MonotonicTime now) {
  if (failures_++ == 0) failing_since_ = now;
  if (failures_ < options_.failures_min || now - failing_since_ < options_.failing_min) return;
  ++times_opened_;
  state_ = State::kOpen;
  wait_ = options_.first_wait;
  probe_at_ = now + wait_;
}

CircuitBreaker::End BreakerEndOf(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
      return CircuitBreaker::End::kFailed;
    case Code::kCancelled:
    case Code::kResourceExhausted:
      return CircuitBreaker::End::kUnknown;
    default:
      return CircuitBreaker::End::kAnswered;
  }
}

}  // namespace optcache::storage
