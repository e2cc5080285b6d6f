#pragma once

// What the sidecar does later: every deadline, renewal and retry of the core is one alarm.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/clock.h"

namespace optcache::sidecar {

// A time-ordered list of calls. Knows no timer: its owner asks Next() and calls RunDue() then.
// Not thread-safe: belongs to the event loop's thread.
class Alarms {
 public:
  using Action = std::function<void()>;
  // Names a call; 0 is never one.
  using Id = std::uint64_t;

  // `rearm` is called whenever the first alarm has become earlier; may be empty.
  explicit Alarms(const Clock& clock, std::function<void()> rearm = {})
      : clock_(clock), rearm_(std::move(rearm)) {}

  Id At(MonotonicTime at, Action action) {
    const bool first = calls_.empty() || at < calls_.begin()->first.first;
    const Id id = ++last_id_;
    calls_.emplace(std::pair(at, id), std::move(action));
    times_.emplace(id, at);
    if (first && rearm_) rearm_();
    return id;
  }
  Id After(Duration wait, Action action) { return At(Now() + wait, std::move(action)); }

  // Does nothing if the call was made already.
  void Cancel(Id id) {
    const auto time = times_.find(id);
    if (time == times_.end()) return;
    calls_.erase({time->second, id});
    times_.erase(time);
  }

  // Makes the calls that are due, also those that become due meanwhile.
  void RunDue() {
    while (!calls_.empty() && calls_.begin()->first.first <= Now()) {
      auto call = calls_.extract(calls_.begin());
      times_.erase(call.key().second);
      call.mapped()();
    }
  }

  std::optional<MonotonicTime> Next() const {
    if (calls_.empty()) return std::nullopt;
    return calls_.begin()->first.first;
  }

  MonotonicTime Now() const { return clock_.Now(); }

 private:
  const Clock& clock_;
  std::function<void()> rearm_;
  std::map<std::pair<MonotonicTime, Id>, Action> calls_;
  std::map<Id, MonotonicTime> times_;
  Id last_id_ = 0;
};

}  // namespace optcache::sidecar
