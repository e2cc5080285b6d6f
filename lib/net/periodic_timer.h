#pragma once

// Calls a function at an interval.
//
//   PeriodicTimer tick(loop, std::chrono::seconds(1), [this] { Tick(); });

#include <functional>
#include <memory>

#include "base/clock.h"
#include "net/event_loop.h"

namespace optcache::net {

// Calls `callback` after `interval`, and again `interval` after each time it has returned.
// Destroying, reassigning or cancelling the timer ends that, also from within the callback. A value
// with one owner; used on the loop's thread only.
class PeriodicTimer {
 public:
  PeriodicTimer();  // calls nothing
  PeriodicTimer(EventLoop& loop, Duration interval, std::function<void()> callback);
  ~PeriodicTimer();
  PeriodicTimer(PeriodicTimer&&) noexcept;
  PeriodicTimer& operator=(PeriodicTimer&&) noexcept;

  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the call under way, which may end this
};

}  // namespace optcache::net
