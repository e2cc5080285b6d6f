#pragma once

// Who stands at the other end of each connection, and what they may say there. For nodes in a
// cluster; the rules themselves are in access.h.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cache-node/retention/effects.h"
#include "cache-node/trust/refusal_counters.h"
#include "cache-node/trust/token_check.h"
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

// An announcement that is judged otherwise than before.
struct JudgedAnew {
  ClientId client = 0;
  wire::StreamAttach attach;
  std::optional<wire::StreamOrder> order;  // what followed it
  bool granted = false;
};

// Not thread-safe: the event loop owns it.
class Authorizer {
 public:
  struct Options {
    NamespaceLimits limits;
    std::string machine;  // this one's name; empty: it is not compared with the tokens'
    // The name of a dataset that this node holds, be it unknown to the state; "": it has none.
    std::function<std::string(wire::DatasetKey)> held;
  };
  // `state` gives the desired state in force. What is passed outlives this.
  Authorizer(TokenCheck& tokens, RefusalCounters& refusal_counters, const Clock& clock,
             std::function<const coordination::DesiredState&()> state, Options options)
      : tokens_(tokens),
        refusal_counters_(refusal_counters),
        clock_(clock),
        state_(std::move(state)),
        options_(std::move(options)) {}

  // As net::Authorize. Nodes have shown their certificate before they come here.
  void Authorize(const wire::Hello& hello, const net::PeerInfo& peer,
                 std::function<void(Status)> decide);

  // A connection that was let in; an error: it is to be closed with that.
  Status OnOpen(ClientId client, net::Connection& connection);
  void OnClosed(ClientId client);

  // May this client say that? An error: this message is not heard, others may be. kNotFound: it
  // speaks of a dataset that the state does not know; what this node still holds of such a one is
  // for its own namespace alone.
  Status AuthorizeMessage(ClientId client, const wire::Message& message);
  // The desired state is another.
  void OnState() { judge_anew_ = true; }
  // Announcements that were refused and may be made now, or the other way round. For a regular
  // call: it does nothing while the state is the same and nobody has made room.
  std::vector<JudgedAnew> JudgeAnew();
  // Closes connections whose token is good no more. For a regular call: each token is reviewed
  // again when the word on it has run out, and while nobody can say, it is good until its own end.
  void CheckTokens();

  // kResourceExhausted: its namespace has as much as it may, and is to read the store.
  // `leases` says how many leases a client has of the dataset that it asks for.
  Status WithinLimits(ClientId client, const std::function<std::size_t(ClientId)>& leases);
  // May it put samples of that dataset, as AuthorizeMessage will say?
  bool MayStore(ClientId client, wire::DatasetKey dataset) const;
  // Null for nodes.
  const Caller* Find(ClientId client) const;

 private:
  struct Proof {
    Caller caller;
    std::string token;    // which says so
    MonotonicTime until;  // it is to be reviewed again
  };
  struct Announced {
    wire::StreamAttach attach;
    std::optional<wire::StreamOrder> order{};  // what followed it
    bool granted = false;                      // else it waits until it may be
  };
  struct Visitor {
    Proof proof;
    net::Connection* connection = nullptr;
    std::map<std::pair<StreamId, Rank>, Announced> streams;  // those that have not ended
    bool in_review = false;
  };
  struct Invited {  // let in, but not open yet
    Proof proof;
    MonotonicTime since;
  };
  class Judging;  // has an overload for each message
  Status IsNode(const wire::Hello& hello, const net::PeerInfo& peer);
  Status Invite(const wire::Hello& hello, const net::PeerInfo& peer, const Caller& caller,
                MonotonicTime until);
  void CheckToken(ClientId client, Visitor& visitor);
  void OnChecked(ClientId client, const Result<Caller>& caller, MonotonicTime until);
  Status AnnounceStream(Visitor& visitor, const wire::StreamAttach& attach);
  Status JudgeStream(const Caller& caller, const Announced& stream) const;
  std::size_t CountStreams(const std::string& name_space, bool granted) const;
  Status MayUseDataset(const Caller& caller, wire::DatasetKey key) const;
  Status MayReadOrWrite(const Caller& caller, wire::DatasetKey key);
  Status MayTellOfStore(const Caller& caller, wire::DatasetKey key);
  Status Refuse(Refused reason, const Caller& caller, Status why);

  TokenCheck& tokens_;
  RefusalCounters& refusal_counters_;
  const Clock& clock_;
  std::function<const coordination::DesiredState&()> state_;
  Options options_;
  std::map<std::string, Invited> invited_;  // by address, which no two open connections share
  std::map<ClientId, Visitor> visitors_;
  bool judge_anew_ = false;
};

}  // namespace optcache::node
