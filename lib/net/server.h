#pragma once

// Accepts connections, takes their Hello, and gives each to a handler.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/counters.h"
#include "base/result.h"
#include "net/connection.h"
#include "net/event_loop.h"

namespace optcache::net {

struct ServerOptions {
  std::string name;  // of this server, told in Welcome
  ConnectionLimits limits;
  // A peer that has not sent its whole Hello by then is closed.
  Duration hello_deadline = std::chrono::seconds(5);
  std::size_t max_connections = 4096;
  // May the peer connect? An error is told to it in a Refusal. Empty: everybody may.
  std::function<Status(const wire::Hello&)> authorize;
};

// Chooses the handler of a connection whose Hello has been accepted (peer_role() and the like are
// known). Null closes it.
using HandlerFactory = std::function<std::shared_ptr<ConnectionHandler>(Connection&)>;

// Used on the loop's thread only. The destructor closes what is still open; OnClosed of those comes
// while the loop runs.
class Server {
 public:
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // The TCP port, also when 0 was asked for; 0 for a Unix socket.
  virtual std::uint16_t port() const = 0;
  // Where clients dial: the address listened on, with the true port.
  virtual std::string address() const = 0;
  virtual std::size_t open_connections() const = 0;

  // Accepts no more, sends what is queued and closes each connection when that is done, at latest
  // after `grace`; then calls `done`.
  virtual void Stop(Duration grace, std::function<void()> done) = 0;

  virtual void VisitCounters(const CounterVisitor& visitor) const = 0;

 protected:
  Server() = default;
};

// `address`: "host:port" ("0.0.0.0:0", "[::1]:4123", "localhost:4123") or "unix:/path"; a socket
// file that nobody listens on is replaced. kInvalidArgument: not an address. kConflict: somebody
// listens there. Other errors are the system's.
Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options, HandlerFactory handlers);

// One handler for all connections.
Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options,
                                       std::shared_ptr<ConnectionHandler> handler);

}  // namespace optcache::net
