#include "storage/internal/page_retries.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "storage/object_store.h"

namespace optcache::storage::internal {

Backoff PageBackoff(const PageRetryOptions& options, std::string_view page) {
  return {options.backoff, Random::Mix(options.seed ^ std::hash<std::string_view>()(page))};
}

PageRetries::Attempts PageRetries::Begin(std::string_view page) const {
  return {.backoff = PageBackoff(options_, page), .began = clock_.Now()};
}

Duration PageRetries::Patience() const {
  return answered_ ? options_.patience : std::min(options_.patience, options_.first_patience);
}

bool PageRetries::WaitForNext(Attempts& attempts, Status& status) {
  if (!MayGetBetter(status.code())) return false;
  LogWaits(attempts, status);
  const Duration left = Deadline(attempts.began + Patience()).Remaining(clock_.Now());
  if (left > Duration::zero() && Sleep(std::min(attempts.backoff.Next(), left))) {
    ++attempts.made;
    return true;
  }
  status = std::move(status).WithContext(fmt::format("asked {} times", attempts.made));
  return false;
}

void PageRetries::LogWaits(const Attempts& attempts, const Status& status) {
  std::optional<StoreWaits> tell;
  {
    const MutexLock lock(mutex_);
    waits_.Note(&attempts, attempts.began, status.message());
    tell = waits_.Tell(clock_.Now());
  }
  if (tell) LogStoreWaits(options_.store, *tell, Patience());
}

void PageRetries::Forget(const Attempts& attempts) {
  const MutexLock lock(mutex_);
  waits_.Forget(&attempts);
}

bool PageRetries::Sleep(Duration wait) {
  const MonotonicTime until = clock_.Now() + wait;
  if (options_.deadline.Expired(until)) return false;
  const MutexLock lock(mutex_);
  while (!stopping_ && clock_.Now() < until)
    changed_.WaitUntil(mutex_, until);
  return !stopping_;
}

void PageRetries::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace optcache::storage::internal
