#pragma once

// Connects to a server and introduces this side.

#include <memory>
#include <string>

#include "net/connection.h"
#include "net/event_loop.h"
#include "wire/messages.h"

namespace optcache::net {

struct DialOptions {
  wire::Hello hello;  // who is calling
  // For name lookup and connecting.
  Duration connect_deadline = std::chrono::milliseconds(200);
  // From then on for the server's Welcome.
  Duration welcome_deadline = std::chrono::seconds(5);
  ConnectionLimits limits;
  // Where to count; null: nowhere.
  std::shared_ptr<TrafficCounters> counters;
};

// Connects in the background: OnOpen when the server has answered Welcome, else OnClosed with
// kUnavailable (refused, unreachable, unknown host), kDeadlineExceeded, kInvalidArgument (not an
// address), or the code of the server's Refusal. Neither comes before Dial has returned. Close the
// returned connection to give up.
std::shared_ptr<Connection> Dial(EventLoop& loop, const std::string& address, DialOptions options,
                                 std::shared_ptr<ConnectionHandler> handler);

}  // namespace optcache::net
