#pragma once

// When a read is tried again after an attempt that failed.

#include <cstdint>
#include <optional>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "storage/object_store.h"
#include "storage/retry_budget.h"

namespace optcache::storage {

struct RetryOptions {
  // For this long a read, Stat or List is tried again after faults that can pass, counted from its
  // begin, or from when it last got bytes that had not come before.
  Duration patience = std::chrono::minutes(10);
  // The patience of Stat and List with a store that has not answered once: a user who gives a wrong
  // address wants to know soon.
  Duration first_patience = std::chrono::seconds(30);
  Duration silence_max = kSilenceMax;                   // of an attempt, see ReadRequest
  Duration retry_after_max = std::chrono::seconds(60);  // a Retry-After beyond it is taken for this
  BackoffOptions backoff = {.limit = std::chrono::seconds(10)};
  bool repeats_lists = true;  // false: the inner store asks again itself for what fails
  Duration gone_wait = std::chrono::seconds(1);  // between questions whether a store is back
  RetryBudgetOptions budget;                     // of all reads together
  size_t reads_max = 4096;                       // accepted and not yet ended
  std::uint64_t seed = 0;                        // of the jitter
};

// Zero where nothing is left.
struct TimeLeft {
  Duration patience{};
  Duration deadline{};
};

// How long to wait before the next attempt, or nothing if `outcome` is final: it does not get
// better by itself, patience has ended, what the store asks for goes beyond it, or the wait would
// not end before the deadline. The last attempt is made when patience ends, not before.
std::optional<Duration> WaitBeforeRetry(const RetryOptions& options, const ReadOutcome& outcome,
                                        Duration backoff, TimeLeft left);

// Why there is no wait for another attempt after a fault that can pass: for messages.
std::string WhyGivenUp(const RetryOptions& options, const ReadOutcome& outcome, TimeLeft left);

// True for faults that can pass.
bool IsWorthAnother(const ReadOutcome& outcome);

}  // namespace optcache::storage
