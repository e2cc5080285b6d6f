#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/address.h"
#include "net/asio.h"
#include "net/event_loop.h"

namespace optcache::net {

// A peer that has just connected: non-blocking, close-on-exec, without delay of small writes.
struct Accepted {
  UniqueFd fd;
  std::string address;  // of the peer
};

// A listening socket, TCP or Unix. Used on the loop's thread only.
class Listener {
 public:
  // Errors as in Listen (net/server.h).
  static Result<std::unique_ptr<Listener>> Open(EventLoop& loop, const std::string& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the true port.
  const Address& address() const { return address_; }

  // Gives each connection to `on_accepted`.
  void Start(std::function<void(Accepted)> on_accepted);
  // Frees the address; may be called again.
  void Stop();

 private:
  Listener(EventLoop& loop, UniqueFd fd, Address address)
      : loop_(loop), fd_(std::move(fd)), address_(std::move(address)) {}
  void AcceptAll();

  EventLoop& loop_;
  UniqueFd fd_;
  Address address_;
  std::function<void(Accepted)> on_accepted_;
  Watch watch_;
  Timer pause_;
};

// What every stream socket of ours wants: no delay of small writes, and a probe for peers that
// vanished.
void ConfigureStream(int fd);

}  // namespace optcache::net
