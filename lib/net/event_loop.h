#pragma once

// The one thread on which a program takes its decisions: sockets, timers and posted work run there
// one after the other, so what is called from it needs no lock.
//
//   EventLoop loop;
//   Timer tick = loop.After(std::chrono::seconds(1), [] { ... });
//   loop.Run();  // until Stop

#include <functional>
#include <memory>

#include "base/clock.h"

namespace optcache::net {

// A call that is due later. Destroying or reassigning it cancels the call. A value with one owner;
// used on the loop's thread only.
class Timer {
 public:
  Timer();
  ~Timer();
  Timer(Timer&&) noexcept;
  Timer& operator=(Timer&&) noexcept;

  void Cancel();
  // Waiting: neither called nor cancelled yet.
  bool active() const;

 private:
  friend class EventLoop;
  struct State;
  explicit Timer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Calls back while a descriptor is readable. Destroying or reassigning it ends the watch. A value
// with one owner; used on the loop's thread only.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;

  void Cancel();
  bool active() const;

 private:
  friend class EventLoop;
  struct State;
  explicit Watch(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// Run it on one thread; it outlives its timers, watches, connections and servers. Post and Stop are
// thread-safe; all else belongs to the thread that runs the loop, or to the one that sets it up
// before Run.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Works until Stop. Can be called again after it returned.
  void Run();

  // Makes Run return once what was posted before has run; if nobody runs the loop, the next Run.
  // Thread-safe.
  void Stop();

  // Calls `work` on the loop's thread, after what was posted before, never from within Post.
  // Thread-safe. Who posts from another thread bounds how much: the queue itself has no limit.
  void Post(std::function<void()> work);

  // Calls `callback` once after `wait`, unless the handle dies first.
  [[nodiscard]] Timer After(Duration wait, std::function<void()> callback);

  // Calls `callback` as long as `fd` has something to read or is at its end (level-triggered).
  // The caller keeps the ownership of `fd`, which becomes non-blocking, and ends the watch before
  // it closes it.
  [[nodiscard]] Watch WatchReadable(int fd, std::function<void()> callback);

  // For the .cc files of net only.
  class Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::net
