#include "kube/work_queue.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/check.h"

namespace optcache::kube {

WorkQueue::WorkQueue(WorkQueueOptions options)
    : options_(std::move(options)),
      tokens_(options_.retries_burst),
      waited_(kSecondsBounds),
      worked_(kSecondsBounds) {}

void WorkQueue::Add(const ObjectKey& key, MonotonicTime now) {
  if (working_.contains(key)) {
    if (again_.insert(key).second) ++adds_;
    return;
  }
  if (!ready_since_.emplace(key, now).second) return;
  ++adds_;
  ready_.push_back(key);
}

void WorkQueue::AddAfter(const ObjectKey& key, Duration wait, MonotonicTime now) {
  if (wait <= Duration::zero()) return Add(key, now);
  const MonotonicTime at = now + wait;
  const auto [found, added] = due_.emplace(key, at);
  if (!added) {
    if (found->second <= at) return;
    by_due_.erase({found->second, key});
    found->second = at;
  }
  by_due_.emplace(at, key);
}

void WorkQueue::AddRateLimited(const ObjectKey& key, MonotonicTime now) {
  ++retries_;
  const double doublings = failures_[key]++;
  const double wait = ToSeconds(options_.retry_first) * std::exp2(doublings);
  const Duration own =
      wait >= ToSeconds(options_.retry_limit) ? options_.retry_limit : FromSeconds(wait);
  AddAfter(key, std::max(own, TakeToken(now)), now);
}

// How long until the bucket has a token; it is taken now, so that the next one waits longer.
Duration WorkQueue::TakeToken(MonotonicTime now) {
  if (tokens_at_) tokens_ += ToSeconds(now - *tokens_at_) * options_.retries_per_second;
  tokens_at_ = now;
  tokens_ = std::min(tokens_, options_.retries_burst) - 1;
  if (tokens_ >= 0) return Duration::zero();
  return FromSeconds(-tokens_ / options_.retries_per_second);
}

void WorkQueue::Forget(const ObjectKey& key) {
  failures_.erase(key);
}

std::uint32_t WorkQueue::Failures(const ObjectKey& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

void WorkQueue::MoveDue(MonotonicTime now) {
  while (!by_due_.empty() && by_due_.begin()->first <= now) {
    const ObjectKey key = by_due_.begin()->second;
    by_due_.erase(by_due_.begin());
    due_.erase(key);
    Add(key, now);
  }
}

std::optional<ObjectKey> WorkQueue::Take(MonotonicTime now) {
  MoveDue(now);
  if (ready_.empty()) return std::nullopt;
  ObjectKey key = std::move(ready_.front());
  ready_.pop_front();
  const auto since = ready_since_.extract(key);
  waited_.Observe(ToSeconds(now - since.mapped()));
  working_.emplace(key, now);
  return key;
}

void WorkQueue::Done(const ObjectKey& key, MonotonicTime now) {
  const auto work = working_.extract(key);
  CHECK(!work.empty());
  worked_.Observe(ToSeconds(now - work.mapped()));
  if (again_.erase(key) == 0) return;
  ready_since_.emplace(key, now);
  ready_.push_back(key);
}

std::optional<MonotonicTime> WorkQueue::NextDue() const {
  if (by_due_.empty()) return std::nullopt;
  return by_due_.begin()->first;
}

void WorkQueue::VisitCounters(const CounterVisitor& visitor, MonotonicTime now) const {
  const MetricLabels labels = {{"name", options_.name}};
  const auto gauge = [&](std::string_view name, double value) {
    visitor(MetricKind::kGauge, name, labels, value);
  };
  Duration unfinished{};
  Duration longest{};
  for (const auto& [key, since] : working_) {
    unfinished += now - since;
    longest = std::max<Duration>(longest, now - since);
  }
  gauge("workqueue_depth", static_cast<double>(ready_.size() + again_.size()));
  gauge("workqueue_unfinished_work_seconds", ToSeconds(unfinished));
  gauge("workqueue_longest_running_processor_seconds", ToSeconds(longest));
  visitor(MetricKind::kCounter, "workqueue_adds_total", labels, static_cast<double>(adds_));
  visitor(MetricKind::kCounter, "workqueue_retries_total", labels, static_cast<double>(retries_));
  waited_.Visit(visitor, "workqueue_queue_duration_seconds", labels);
  worked_.Visit(visitor, "workqueue_work_duration_seconds", labels);
}

}  // namespace optcache::kube
