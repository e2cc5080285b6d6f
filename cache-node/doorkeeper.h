#pragma once

// Who stands at the other end of each connection, and what they may say there. For nodes in a
// cluster; the rules themselves are in access.h.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "cache-node/effects.h"
#include "cache-node/refusals.h"
#include "cache-node/token_check.h"
#include "coordination/state.h"
#include "net/connection.h"
#include "net/peer.h"
#include "wire/messages.h"

namespace optcache::node {

// What the pods of one namespace may have on this node at once.
struct NamespaceLimits {
  std::size_t connections = 512;
  std::size_t streams = 256;
  std::size_t leases = 65'536;     // of one dataset
  ByteCount queued_bytes = 1_GiB;  // answers that its sidecars have not taken yet
};

// Not thread-safe: the event loop owns it.
class Doorkeeper {
 public:
  struct Options {
    NamespaceLimits limits;
    std::string machine;  // this one's name; empty: it is not compared with the tokens'
  };
  // `state` gives the desired state in force. What is passed outlives this.
  Doorkeeper(TokenCheck& tokens, Refusals& refusals, const Clock& clock,
             std::function<const coordination::DesiredState&()> state, Options options)
      : tokens_(tokens),
        refusals_(refusals),
        clock_(clock),
        state_(std::move(state)),
        options_(std::move(options)) {}

  // As net::Authorize. Nodes have shown their certificate before they come here.
  void Authorize(const wire::Hello& hello, const net::PeerInfo& peer,
                 std::function<void(Status)> decide);

  // A connection that was let in; an error: it is to be closed with that.
  Status OnOpen(ClientId client, const net::Connection& connection);
  void OnClosed(ClientId client);

  // May this client say that? An error: it is to be closed with that.
  Status MaySay(ClientId client, const wire::Message& message);
  // kResourceExhausted: its namespace has as much as it may, and is to read the store.
  // `leases` says how many leases a client has of the dataset that it asks for.
  Status WithinLimits(ClientId client, const std::function<std::size_t(ClientId)>& leases);
  // May it put samples of that dataset, as MaySay will say?
  bool MayStore(ClientId client, wire::DatasetKey dataset) const;
  // Null for nodes.
  const Caller* Find(ClientId client) const;

 private:
  struct Visitor {
    Caller caller;
    const net::Connection* connection = nullptr;
    std::set<std::pair<StreamId, Rank>> streams;  // announced here and not ended
  };
  struct Invited {  // let in, but not open yet
    Caller caller;
    MonotonicTime since;
  };
  Status IsNode(const wire::Hello& hello, const net::PeerInfo& peer);
  Status Invite(const wire::Hello& hello, const net::PeerInfo& peer, const Caller& caller);
  Status AnnounceStream(Visitor& visitor, const wire::StreamAttach& attach);
  Status MayUseDataset(const Caller& caller, wire::DatasetKey key);
  Status Refuse(Refused reason, const Caller& caller, Status why);

  TokenCheck& tokens_;
  Refusals& refusals_;
  const Clock& clock_;
  std::function<const coordination::DesiredState&()> state_;
  Options options_;
  std::map<std::string, Invited> invited_;  // by address, which no two open connections share
  std::map<ClientId, Visitor> visitors_;
};

}  // namespace optcache::node
