#include "net/periodic_timer.h"

#include <utility>

namespace optcache::net {

struct PeriodicTimer::State : std::enable_shared_from_this<State> {
  State(EventLoop& on, Duration every, std::function<void()> call)
      : loop(on), interval(every), callback(std::move(call)) {}

  void Arm() {
    timer = loop.After(interval, [this] { Run(); });
  }
  // If the callback ends the timer, this goes with `self`, and what has just been armed with it.
  void Run() {
    const auto self = shared_from_this();
    callback();
    Arm();
  }

  EventLoop& loop;
  const Duration interval;
  const std::function<void()> callback;
  Timer timer;
};

PeriodicTimer::PeriodicTimer() = default;
PeriodicTimer::PeriodicTimer(EventLoop& loop, Duration interval, std::function<void()> callback)
    : state_(std::make_shared<State>(loop, interval, std::move(callback))) {
  state_->Arm();
}
PeriodicTimer::PeriodicTimer(PeriodicTimer&&) noexcept = default;
PeriodicTimer::~PeriodicTimer() = default;
PeriodicTimer& PeriodicTimer::operator=(PeriodicTimer&&) noexcept = default;

void PeriodicTimer::Cancel() {
  state_.reset();
}

}  // namespace optcache::net
