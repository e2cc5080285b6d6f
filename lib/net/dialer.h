#pragma once

// Connects to a server and introduces this side.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/tls.h"
#include "wire/messages.h"

namespace optcache::net {

struct DialOptions {
  wire::Hello hello;  // who is calling

  // Null: plaintext. Else the server's certificate must be for `server_name`, whatever the address.
  std::shared_ptr<const TlsContext> tls;
  std::string server_name = std::string(kNodeServerName);
  // Asked at each Dial for the token of that Hello, so that a token may change; an error ends the
  // attempt. Goes by TLS or a Unix socket only. Empty: `hello` has the token, or there is none.
  std::function<Result<std::string>()> token;
  // A sidecar with TLS: offers to go on in plaintext with sealed frames (docs/formats/wire.md,
  // Bulk).
  bool bulk = false;

  // For name lookup and connecting: nobody waits for it, and a busy machine takes its time.
  Duration connect_deadline = std::chrono::seconds(1);
  // From then on for the TLS handshake and the server's Welcome.
  Duration welcome_deadline = std::chrono::seconds(5);
  ConnectionLimits limits;
  // Where to count; null: nowhere.
  std::shared_ptr<TrafficCounters> counters;
  std::shared_ptr<HandshakeFailures> tls_failures;
};

// Connects in the background: OnOpen when the server has answered Welcome, else OnClosed with
// kUnavailable (refused, unreachable, unknown host, no TLS there), kDeadlineExceeded,
// kInvalidArgument (not an address), kPermissionDenied (the server's certificate is not trusted or
// for another name), or the code of the server's Refusal. Neither comes before Dial has returned.
// Close the returned connection to give up.
std::shared_ptr<Connection> Dial(EventLoop& loop, const std::string& address, DialOptions options,
                                 std::shared_ptr<ConnectionHandler> handler);

}  // namespace optcache::net
