#pragma once

// What an informer does next: a pure state machine.
//
//   list, page by page ──► watch from the list's version ──► end in order: watch again at once
//      ▲  ▲                    │         │
//      │  └─ 410: at once ─────┘         └─ anything else: wait, then watch again
//      └──── wait (800 ms to 30 s)

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/random.h"
#include "kube/api_error.h"

namespace optcache::kube {

// As client-go's reflector has them.
struct WatchCycleOptions {
  std::uint32_t page_limit = 500;
  Duration watch_timeout_min = std::chrono::minutes(5);  // up to twice that, by chance
  // On top of the server's timeout, and the longest silence: bookmarks come about every minute.
  Duration idle_deadline = std::chrono::seconds(150);
  Duration backoff_first = std::chrono::milliseconds(800);
  Duration backoff_limit = std::chrono::seconds(30);
  Duration backoff_reset = std::chrono::minutes(2);  // after this long without a failure
  // A watch that ends in order, but sooner and without a word, has failed.
  Duration shortest_watch = std::chrono::seconds(1);
  // This many watches broke in a row before they told anything: list again.
  std::uint32_t max_barren_watches = 3;
};

struct ListStep {
  std::uint32_t limit = 0;  // 0: all at once
  std::string continue_token;
  bool first = false;  // what earlier pages brought is void
};
struct WatchStep {
  std::string resource_version;
  Duration timeout{};
  Duration idle_deadline{};
};
// Then call Resume.
struct WaitStep {
  Duration wait{};
};
using CycleStep = std::variant<ListStep, WatchStep, WaitStep>;

// Waits that double with a jitter of up to as much again, and start again after a healthy time.
// Not thread-safe: a value with one owner.
class RetryDelay {
 public:
  RetryDelay(Duration first, Duration limit, Duration reset, std::uint64_t seed)
      : first_(first), limit_(limit), reset_(reset), next_(first), random_(seed) {}
  // Called at a failure.
  Duration Next(MonotonicTime now);

 private:
  const Duration first_;
  const Duration limit_;
  const Duration reset_;
  Duration next_;
  std::optional<MonotonicTime> last_;
  Random random_;
};

// One call an event of the outside world, each answered by the step to take now. Not thread-safe: a
// value with one owner.
class WatchCycle {
 public:
  WatchCycle(WatchCycleOptions options, std::uint64_t seed);

  CycleStep Start();
  // A page has come; `continue_token` empty: it was the last, and the list is of that version.
  CycleStep OnPage(const std::string& resource_version, const std::string& continue_token,
                   MonotonicTime now);
  CycleStep OnListFailed(const ApiError& error, MonotonicTime now);
  // An event or bookmark: the watch goes on from here if it breaks.
  void OnProgress(const std::string& resource_version);
  // The watch's end; nothing: in order.
  CycleStep OnWatchEnded(const std::optional<ApiError>& error, MonotonicTime now);
  // The wait is over.
  CycleStep Resume(MonotonicTime now);

  std::uint64_t lists() const { return lists_; }
  std::uint64_t watches() const { return watches_; }
  std::uint64_t failures() const { return failures_; }

 private:
  enum class Next { kPages, kWholeList, kWatch };

  CycleStep Take(Next next, MonotonicTime now);
  CycleStep Fail(Next next, const std::optional<Duration>& at_least, MonotonicTime now);

  const WatchCycleOptions options_;
  Random random_;
  RetryDelay delay_;
  std::string resource_version_;
  Next next_ = Next::kPages;  // after a wait
  bool continuing_ = false;   // the last ListStep had a continue token
  bool whole_list_ = false;   // pages have failed: this list comes at once
  MonotonicTime watch_began_;
  bool progressed_ = false;   // the present watch has told something
  std::uint32_t barren_ = 0;  // watches in a row that broke without that
  std::uint64_t lists_ = 0;
  std::uint64_t watches_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace optcache::kube
