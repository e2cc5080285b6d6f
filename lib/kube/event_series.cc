#include "kube/event_series.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace optcache::kube {

ObjectReference ReferenceTo(const Resource& resource, const Json& object) {
  ObjectKey key = KeyOf(object);
  return {.api_version = resource.ApiVersion(),
          .kind = std::string(resource.kind),
          .ns = std::move(key.ns),
          .name = std::move(key.name),
          .uid = UidOf(object)};
}

std::optional<EventWrite> EventSeries::Record(const ObjectReference& regarding,
                                              const EventText& text, MonotonicTime now,
                                              double unix_seconds) {
  const SeriesKey key{.regarding = regarding,
                      .type = text.type,
                      .reason = text.reason,
                      .action = text.action,
                      .note = text.note};
  const auto found = series_.find(key);
  if (found != series_.end() && now - found->second.last_seen < options_.series_end) {
    Series& series = found->second;
    ++series.write.count;
    series.write.last_seconds = unix_seconds;
    series.last_seen = now;
    if (!series.due) series.due = now + series.wait;
    return std::nullopt;
  }
  if (found != series_.end()) series_.erase(found);
  if (!Allow(regarding, now)) {
    ++suppressed_;
    return std::nullopt;
  }
  MakeRoom(now);
  const EventWrite write{.series = ++last_id_,
                         .regarding = regarding,
                         .text = text,
                         .count = 1,
                         .first_seconds = unix_seconds,
                         .last_seconds = unix_seconds};
  series_.emplace(key, Series{.write = write, .last_seen = now, .wait = options_.update_first});
  return write;
}

std::vector<EventWrite> EventSeries::TakeDue(MonotonicTime now) {
  std::vector<EventWrite> writes;
  for (auto& [key, series] : series_) {
    if (!series.due || *series.due > now) continue;
    writes.push_back(series.write);
    series.due.reset();
    series.wait = std::min(series.wait * 2, options_.update_limit);
  }
  return writes;
}

std::optional<MonotonicTime> EventSeries::NextDue() const {
  std::optional<MonotonicTime> next;
  for (const auto& [key, series] : series_) {
    if (series.due && (!next || *series.due < *next)) next = series.due;
  }
  return next;
}

void EventSeries::Forget(std::uint64_t series) {
  std::erase_if(series_, [&](const auto& entry) { return entry.second.write.series == series; });
}

// A bucket an object, so that one that flaps cannot fill etcd.
bool EventSeries::Allow(const ObjectReference& regarding, MonotonicTime now) {
  const double burst = options_.burst;
  Allowance& allowance =
      allowances_.try_emplace(regarding, Allowance{.tokens = burst, .at = now}).first->second;
  allowance.tokens =
      std::min(burst, allowance.tokens + std::chrono::duration<double>(now - allowance.at) /
                                             std::chrono::duration<double>(options_.refill));
  allowance.at = now;
  if (allowance.tokens < 1) return false;
  allowance.tokens -= 1;
  return true;
}

void EventSeries::MakeRoom(MonotonicTime now) {
  if (allowances_.size() >= options_.max_series) {
    // Who has said nothing for this long has all of its burst again.
    std::erase_if(allowances_, [&](const auto& entry) {
      return now - entry.second.at >= options_.refill * options_.burst;
    });
    if (allowances_.size() >= options_.max_series) allowances_.clear();
  }
  if (series_.size() < options_.max_series) return;
  std::erase_if(series_, [&](const auto& entry) {
    return now - entry.second.last_seen >= options_.series_end && !entry.second.due;
  });
  if (series_.size() < options_.max_series) return;
  // An eighth at a time, as looking for them looks at all.
  std::vector<MonotonicTime> times;
  times.reserve(series_.size());
  for (const auto& [key, series] : series_)
    times.push_back(series.last_seen);
  const auto oldest = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 8);
  std::nth_element(times.begin(), oldest, times.end());
  std::erase_if(series_, [&](const auto& entry) { return entry.second.last_seen <= *oldest; });
}

}  // namespace optcache::kube
