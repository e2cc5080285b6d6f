#pragma once

// Keys that need work, as client-go's workqueue: each at most once in it, never with two workers at
// a time, later and later if it fails again and again. Pure: time is an argument.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/histogram.h"
#include "kube/object.h"

namespace optcache::kube {

struct WorkQueueOptions {
  std::string name;  // label of the metrics
  // Of one key that fails: doubles each time.
  Duration retry_first = std::chrono::milliseconds(5);
  Duration retry_limit = std::chrono::seconds(1000);
  // Of all retries together.
  double retries_per_second = 10;
  double retries_burst = 100;
};

// Not thread-safe: a value with one owner. At most one entry a key, so its size is bounded by the
// objects that exist or existed.
class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueOptions options);

  // Does nothing if the key waits already. One that is being worked on waits for its Done.
  void Add(const ObjectKey& key, MonotonicTime now);
  // Of several times the earliest counts.
  void AddAfter(const ObjectKey& key, Duration wait, MonotonicTime now);
  // After a failure: when both the key's own schedule and that of all allow.
  void AddRateLimited(const ObjectKey& key, MonotonicTime now);
  // The key has succeeded: its next failure is its first.
  void Forget(const ObjectKey& key);
  std::uint32_t Failures(const ObjectKey& key) const;

  // The key to work on now; Done must follow. Nothing if none is due.
  std::optional<ObjectKey> Take(MonotonicTime now);
  void Done(const ObjectKey& key, MonotonicTime now);

  // When a key that waits for its time is due; nothing if none does.
  std::optional<MonotonicTime> NextDue() const;
  std::size_t ready() const { return ready_.size(); }
  std::size_t working() const { return working_.size(); }

  // workqueue_* in docs/metrics.md.
  void VisitCounters(const CounterVisitor& visitor, MonotonicTime now) const;

 private:
  void MoveDue(MonotonicTime now);
  Duration TakeToken(MonotonicTime now);

  const WorkQueueOptions options_;
  std::deque<ObjectKey> ready_;
  std::map<ObjectKey, MonotonicTime> ready_since_;
  std::map<ObjectKey, MonotonicTime> working_;  // since when
  std::set<ObjectKey> again_;                   // added while being worked on
  std::map<ObjectKey, MonotonicTime> due_;
  std::set<std::pair<MonotonicTime, ObjectKey>> by_due_;
  std::map<ObjectKey, std::uint32_t> failures_;
  double tokens_;
  std::optional<MonotonicTime> tokens_at_;
  std::uint64_t adds_ = 0;
  std::uint64_t retries_ = 0;
  Histogram waited_;
  Histogram worked_;
};

}  // namespace optcache::kube
