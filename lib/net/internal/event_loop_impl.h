#pragma once

#include "net/asio.h"
#include "net/event_loop.h"

namespace optcache::net {

class EventLoop::Impl {
 public:
  // One thread runs it, so Asio may keep what that thread posts in a queue without a lock.
  asio::io_context context{1};
};

inline asio::io_context& ContextOf(EventLoop& loop) {
  return loop.impl().context;
}

}  // namespace optcache::net
