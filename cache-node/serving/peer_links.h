#pragma once

// The node's connections: which nodes it is joined with, what is sent where, and which of them are
// silent (peer_watch.h).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "cache-node/retention/effects.h"
#include "cache-node/serving/peer_watch.h"
#include "coordination/state.h"
#include "net/client_pool.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/tls.h"
#include "wire/messages.h"

namespace optcache::node {

// Of a connection, never 0.
inline ClientId IdOf(const net::Connection& connection) {
  return connection.id() + 1;
}

// Used on the loop's thread only.
class PeerLinks final : public Effects {
 public:
  struct Options {
    std::string name;        // this node's
    std::uint64_t seed = 0;  // of the jitter with which it dials again
    // In a cluster; then other nodes show a certificate for their name. Null on a laptop.
    std::shared_ptr<const net::TlsContext> tls;
  };
  // `handler` hears of the connections that this dials, as the server's does of the others; it
  // tells this of both.
  PeerLinks(net::EventLoop& loop, const Clock& clock, Options options,
            std::shared_ptr<net::ConnectionHandler> handler)
      : loop_(loop), clock_(clock), options_(std::move(options)), handler_(std::move(handler)) {}

  // Stays connected to these members but this node, which is `self`; 0: it is none, and stays
  // connected to nobody. A node that becomes another member begins all its connections again.
  void SetMembers(wire::MemberId self, const std::vector<coordination::Member>& members);
  bool has_peers() const { return !peers_.empty(); }

  // Of any connection.
  void OnOpen(net::Connection& connection);
  // A node with which a connection has ended.
  struct Lost {
    wire::MemberId member = 0;
    bool gone = false;    // that was the last one
    bool dialed = false;  // by this node, so that answers come no more
  };
  std::optional<Lost> OnClosed(const net::Connection& connection);

  // Effects.
  std::uint32_t NewRequestId() override { return next_request_++; }
  bool Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
             const cache::SampleRef& payload) override;
  bool Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
            const cache::SampleRef& payload) override;

  // About ten times a second; `awaited`: those of whom something is. Returns who has fallen silent:
  // such a one is asked for nothing but whether it is there, and is taken to be gone until it
  // speaks.
  std::vector<wire::MemberId> Watch(const std::set<wire::MemberId>& awaited);
  // Memory is short: closes the connection on which the most answers are not taken.
  void CloseFullest();
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Peer {
    std::string name;
    std::string address;
  };
  // An open connection.
  struct Link {
    net::Connection* connection = nullptr;
    wire::MemberId member = 0;  // at the other end; 0: no node
    bool dialed = false;
  };
  void DialAs(wire::MemberId self);
  Link LinkOf(net::Connection& connection) const;
  // Null: it cannot be reached now.
  net::Connection* ConnectionTo(wire::MemberId member);
  std::string NameOf(wire::MemberId member) const;

  net::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  std::shared_ptr<net::ConnectionHandler> handler_;
  wire::MemberId self_ = 0;
  std::map<wire::MemberId, Peer> peers_;
  std::unique_ptr<net::ClientPool> pool_;  // null: it was no member yet
  std::map<ClientId, Link> links_;
  PeerWatch watch_;
  std::uint64_t silences_ = 0;
  std::uint64_t untaken_closed_ = 0;
  std::uint32_t next_request_ = 1;
};

}  // namespace optcache::node
