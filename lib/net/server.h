#pragma once

// Accepts connections, finds out who they are, and gives each to a handler.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/counters.h"
#include "base/result.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/peer.h"
#include "net/tls.h"

namespace optcache::net {

// May the peer connect? Calls `decide` once, now or later, on the loop's thread; an error is told
// to the peer in a Refusal, so its message names no token. Further calls, and those that come after
// authorize_deadline or after the peer has gone, do nothing.
using Authorize = std::function<void(const wire::Hello& hello, const PeerInfo& peer,
                                     std::function<void(Status)> decide)>;

// For checks that need not wait.
Authorize Immediately(std::function<Status(const wire::Hello&, const PeerInfo&)> check);

struct ServerOptions {
  std::string name;  // of this server, told in Welcome
  ConnectionLimits limits;
  // A peer that has not done its TLS handshake and sent its whole Hello by then is closed. So is
  // one that has waited as long for the turn of its handshake.
  Duration hello_deadline = std::chrono::seconds(5);
  std::size_t max_connections = 4096;
  // How many of them may not have sent their Hello yet. Beyond it, or where max_connections is
  // reached, one of the source that has most of them goes: the one that has been silent longest. A
  // peer that only connects keeps no other out. Source: an IP address.
  std::size_t max_silent = 1024;
  // And of one source; beyond it, that source's longest goes. Unix sockets have no such limit.
  std::size_t max_silent_of_source = 64;
  wire::VersionRange versions;

  // Null: plaintext. Else nothing but TLS is taken; until the context is ready nobody is. Choose
  // ClientCertificate::kRequested where nodes connect.
  std::shared_ptr<const TlsContext> tls;
  HandshakePace handshakes;
  // With TLS, who says that it is a node must have shown a certificate with this DNS name.
  std::string node_name = std::string(kNodeServerName);
  // With TLS, takes the offer of sidecars to go on in plaintext with sealed frames
  // (docs/formats/wire.md, Bulk).
  bool bulk = false;

  // Empty: every peer that gets so far may connect.
  Authorize authorize;
  // Who has no decision by then is refused with kDeadlineExceeded.
  Duration authorize_deadline = std::chrono::seconds(10);
  // How many may wait for theirs; the next is refused with kResourceExhausted.
  std::size_t max_undecided = 256;
  std::size_t max_undecided_of_source = 64;  // as max_silent_of_source
};

// Chooses the handler of a connection that may connect (peer_role() and the like are known). Null
// closes it.
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

// `address`: "host:port" ("*:0", "[::1]:4123", "localhost:4123") or "unix:/path"; a socket
// file that nobody listens on is replaced, and the new one takes connections of this process's user
// and of root alone. kInvalidArgument: not an address. kConflict: another process listens there, or
// a file that is no socket lies there. Other errors are the system's.
Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options, HandlerFactory handlers);

// One handler for all connections.
Result<std::unique_ptr<Server>> Listen(EventLoop& loop, const std::string& address,
                                       ServerOptions options,
                                       std::shared_ptr<ConnectionHandler> handler);

}  // namespace optcache::net
