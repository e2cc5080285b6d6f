#include "storage/retry_wait.h"

#include <algorithm>

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

}  // namespace optcache::storage
