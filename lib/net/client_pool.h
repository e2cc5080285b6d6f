#pragma once

// Keeps connections to a set of addresses in the background, so that nobody waits for one: a peer
// that is down is a null pointer now and a connection again when it has come back.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/backoff.h"
#include "base/counters.h"
#include "net/connection.h"
#include "net/dialer.h"
#include "net/event_loop.h"

namespace optcache::net {

struct ClientPoolOptions {
  DialOptions dial;
  std::size_t connections_per_address = 1;
  BackoffOptions backoff = {.first = std::chrono::milliseconds(100),
                            .limit = std::chrono::seconds(5)};
  // A connection that was open for this long ends well: the next attempts wait as the first ones
  // did.
  Duration healthy_after = std::chrono::seconds(5);
  std::uint64_t seed = 0;        // of the backoff's jitter
  std::string label = "client";  // value of the metrics' label "side"
};

// Used on the loop's thread only. The destructor closes all connections.
class ClientPool {
 public:
  // OnOpen and OnClosed of `handler` come for each connection that was open; failed attempts are
  // counted and logged when they begin, not told.
  ClientPool(EventLoop& loop, ClientPoolOptions options,
             std::shared_ptr<ConnectionHandler> handler);
  ~ClientPool();
  ClientPool(const ClientPool&) = delete;
  ClientPool& operator=(const ClientPool&) = delete;

  // From now on keeps connections to `address`. Does nothing if it does so already.
  void Keep(const std::string& address);
  // Closes the connections to `address` and forgets it.
  void Drop(const std::string& address);

  // An open connection to `address`, in turn if there are several; null while there is none. Never
  // blocks; an address that is not kept yet is from now on. The pointer is good until the loop
  // turns.
  Connection* Get(const std::string& address);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Slot;
  class Peer;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::map<std::string, std::unique_ptr<Peer>> peers_;
};

}  // namespace optcache::net
