#include "net/event_loop.h"

#include <utility>

#include "base/check.h"
#include "net/internal/event_loop_impl.h"

namespace optcache::net {

struct Timer::State {
  State(asio::io_context& context, std::function<void()> call)
      : timer(context), callback(std::move(call)) {}

  asio::steady_timer timer;
  std::function<void()> callback;  // empty: called or cancelled
};

Timer::Timer() = default;
Timer::Timer(std::shared_ptr<State> state) : state_(std::move(state)) {}
Timer::Timer(Timer&&) noexcept = default;
Timer::~Timer() {
  Cancel();
}
Timer& Timer::operator=(Timer&& other) noexcept {
  if (this != &other) {
    Cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Timer::Cancel() {
  const auto state = std::exchange(state_, nullptr);
  if (state == nullptr || !state->callback) return;
  state->callback = nullptr;
  state->timer.cancel();
}

bool Timer::active() const {
  return state_ != nullptr && static_cast<bool>(state_->callback);
}

// The descriptor belongs to the caller: it is released, never closed.
struct Watch::State : std::enable_shared_from_this<Watch::State> {
  State(asio::io_context& context, std::function<void()> call)
      : descriptor(context), callback(std::move(call)) {}

  // Each async_wait asks epoll again, which makes the watch level-triggered.
  void Arm() {
    descriptor.async_wait(asio::posix::descriptor_base::wait_read,
                          [self = shared_from_this()](const error_code& error) {
                            if (error || !self->descriptor.is_open()) return;
                            self->callback();
                            if (self->descriptor.is_open()) self->Arm();
                          });
  }

  asio::posix::stream_descriptor descriptor;
  std::function<void()> callback;  // lives until its last call has returned
};

Watch::Watch() = default;
Watch::Watch(std::shared_ptr<State> state) : state_(std::move(state)) {}
Watch::Watch(Watch&&) noexcept = default;
Watch::~Watch() {
  Cancel();
}
Watch& Watch::operator=(Watch&& other) noexcept {
  if (this != &other) {
    Cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

void Watch::Cancel() {
  const auto state = std::exchange(state_, nullptr);
  if (state != nullptr) state->descriptor.release();
}

bool Watch::active() const {
  return state_ != nullptr;
}

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}
EventLoop::~EventLoop() = default;

void EventLoop::Run() {
  impl_->context.restart();
  const auto work = asio::make_work_guard(impl_->context);
  impl_->context.run();
}

void EventLoop::Stop() {
  // Posted, so that a Stop that comes before Run is not lost.
  asio::post(impl_->context, [this] { impl_->context.stop(); });
}

void EventLoop::Post(std::function<void()> work) {
  asio::post(impl_->context, std::move(work));
}

Timer EventLoop::After(Duration wait, std::function<void()> callback) {
  auto state = std::make_shared<Timer::State>(impl_->context, std::move(callback));
  state->timer.expires_after(wait);
  state->timer.async_wait([state](const error_code&) {
    // Taken out first: the callback may destroy or reassign its own handle.
    const auto call = std::exchange(state->callback, nullptr);
    if (call) call();
  });
  return Timer(std::move(state));
}

Watch EventLoop::WatchReadable(int fd, std::function<void()> callback) {
  auto state = std::make_shared<Watch::State>(impl_->context, std::move(callback));
  error_code error;
  state->descriptor.assign(fd, error);
  CHECK(!error);  // A regular file, or no descriptor at all.
  state->Arm();
  return Watch(std::move(state));
}

}  // namespace optcache::net
