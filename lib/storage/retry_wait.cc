#include "storage/retry_wait.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::storage {

bool IsWorthAnother(const ReadOutcome& outcome) {
  return MayGetBetter(outcome.status.code()) || outcome.keys_expired;
}

std::optional<Duration> WaitBeforeRetry(const RetryOptions& options, const ReadOutcome& outcome,
                                        Duration backoff, TimeLeft left) {
  if (outcome.status.ok() || !IsWorthAnother(outcome)) return std::nullopt;
  const Duration asked = std::min(outcome.retry_after, options.retry_after_max);
  if (left.patience == Duration::zero() || asked > left.patience) return std::nullopt;
  const Duration wait = std::max(asked, std::min(backoff, left.patience));
  if (wait >= left.deadline) return std::nullopt;
  return wait;
}

std::string WhyGivenUp(const RetryOptions& options, const ReadOutcome& outcome, TimeLeft left) {
  const Duration asked = std::min(outcome.retry_after, options.retry_after_max);
  if (left.patience == Duration::zero()) {
    return fmt::format("given up: nothing of it came for {:g} s, which is the patience",
                       ToSeconds(options.patience));
  }
  if (asked > left.patience) {
    return fmt::format("given up: the store asks to wait for {:.1f} s, patience ends in {:.1f} s",
                       ToSeconds(asked), ToSeconds(left.patience));
  }
  return fmt::format("not tried again: its deadline comes in {:.1f} s", ToSeconds(left.deadline));
}

}  // namespace optcache::storage
