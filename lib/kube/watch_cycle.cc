#include "kube/watch_cycle.h"

#include <algorithm>

namespace optcache::kube {

Duration RetryDelay::Next(MonotonicTime now) {
  if (last_ && now - *last_ > reset_) next_ = first_;
  last_ = now;
  const auto wait = std::chrono::duration_cast<Duration>(next_ * (1 + random_.Unit()));
  next_ = std::min(next_ * 2, limit_);
  return wait;
}

WatchCycle::WatchCycle(WatchCycleOptions options, std::uint64_t seed)
    : options_(options),
      random_(seed),
      delay_(options.backoff_first, options.backoff_limit, options.backoff_reset, random_.Next()) {}

CycleStep WatchCycle::Start() {
  return Take(Next::kPages, MonotonicTime());
}

CycleStep WatchCycle::OnPage(const std::string& resource_version, const std::string& continue_token,
                             MonotonicTime now) {
  if (!continue_token.empty()) {
    continuing_ = true;
    return ListStep{.limit = options_.page_limit, .continue_token = continue_token, .first = false};
  }
  resource_version_ = resource_version;
  whole_list_ = false;
  barren_ = 0;
  return Take(Next::kWatch, now);
}

CycleStep WatchCycle::OnListFailed(const ApiError& error, MonotonicTime now) {
  if (error.expired() && continuing_) {
    // The server has compacted the version that the pages are of. Smaller steps would only be too
    // slow again.
    whole_list_ = true;
    return Take(Next::kWholeList, now);
  }
  return Fail(whole_list_ ? Next::kWholeList : Next::kPages, error.retry_after, now);
}

void WatchCycle::OnProgress(const std::string& resource_version) {
  progressed_ = true;
  barren_ = 0;
  if (!resource_version.empty()) resource_version_ = resource_version;
}

CycleStep WatchCycle::OnWatchEnded(const std::optional<ApiError>& error, MonotonicTime now) {
  const bool too_short = !progressed_ && now - watch_began_ < options_.shortest_watch;
  if (!error && !too_short) return Take(Next::kWatch, now);
  if (!progressed_) ++barren_;
  if (error && error->expired()) {
    // Right after a list this would go round and round: the server's cache is behind.
    return barren_ > 1 ? Fail(Next::kPages, error->retry_after, now) : Take(Next::kPages, now);
  }
  const bool refused = error && error->http_status >= 400 && error->http_status < 500 &&
                       error->http_status != 429 && !error->unauthorized();
  const bool lost = refused || barren_ >= options_.max_barren_watches;
  return Fail(lost ? Next::kPages : Next::kWatch, error ? error->retry_after : std::nullopt, now);
}

CycleStep WatchCycle::Resume(MonotonicTime now) {
  return Take(next_, now);
}

CycleStep WatchCycle::Take(Next next, MonotonicTime now) {
  continuing_ = false;
  if (next != Next::kWatch) {
    ++lists_;
    return ListStep{.limit = next == Next::kWholeList ? 0 : options_.page_limit, .first = true};
  }
  ++watches_;
  watch_began_ = now;
  progressed_ = false;
  return WatchStep{.resource_version = resource_version_,
                   .timeout = std::chrono::duration_cast<Duration>(options_.watch_timeout_min *
                                                                   (1 + random_.Unit())),
                   .idle_deadline = options_.idle_deadline};
}

CycleStep WatchCycle::Fail(Next next, const std::optional<Duration>& at_least, MonotonicTime now) {
  ++failures_;
  next_ = next;
  return WaitStep{.wait = std::max(delay_.Next(now), at_least.value_or(Duration::zero()))};
}

}  // namespace optcache::kube
