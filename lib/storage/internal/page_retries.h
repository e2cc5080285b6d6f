#pragma once

// Asks again for pages of a listing that fail: one bad answer among thousands costs that page, not
// all that were listed before it.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "storage/wait_table.h"

namespace optcache::storage::internal {

struct PageRetryOptions {
  std::string store{};  // its name in the log
  // How long a page is asked for.
  Duration patience = std::chrono::minutes(10);
  // The same before any page has come, if it is shorter: a user who gives a wrong address wants to
  // know soon.
  Duration first_patience = std::chrono::seconds(30);
  BackoffOptions backoff = {.limit = std::chrono::seconds(10)};
  std::uint64_t seed = 0;  // of the jitter; another one in each process
  Deadline deadline;
};

// The waits between the attempts for a page. They differ by the seed, so that processes that list
// the same store do not come back in step, and by the page.
Backoff PageBackoff(const PageRetryOptions& options, std::string_view page);

// Of one listing, for all its threads. Pages that are waited for have a line in the log, every ten
// seconds or, where an attempt takes longer, after it. Thread-safe.
class PageRetries {
 public:
  // `clock` outlives it.
  PageRetries(PageRetryOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {}

  // The first answer of `ask` that is a page; or its error, if that does not get better by itself,
  // or if patience or deadline ends or Stop is called before a page comes. Blocks. `page` names the
  // page, so that the waits of several differ.
  template <typename Ask>
  auto AskFor(std::string_view page, const Ask& ask) -> decltype(ask()) {
    Attempts attempts = Begin(page);
    while (true) {
      auto answer = ask();
      if (answer) answered_ = true;
      if (answer || !WaitForNext(attempts, answer.error())) {
        Forget(attempts);
        return answer;
      }
    }
  }

  // Ends all waits: no page is asked for again.
  void Stop();

 private:
  struct Attempts {
    Backoff backoff;
    MonotonicTime began;
    unsigned made = 1;
  };

  Attempts Begin(std::string_view page) const;
  Duration Patience() const;
  // False if there is no next attempt; then the status says how many there were.
  bool WaitForNext(Attempts& attempts, Status& status);
  void LogWaits(const Attempts& attempts, const Status& status);
  void Forget(const Attempts& attempts);
  bool Sleep(Duration wait);

  const PageRetryOptions options_;
  const Clock& clock_;
  std::atomic<bool> answered_ = false;  // a page has come

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  WaitTable waits_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage::internal
