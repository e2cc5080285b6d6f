#pragma once

// Brings each message that comes to a node to the part that decides about it. Each message of the
// protocol has a place here: without one the program does not compile.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/status.h"
#include "cache-node/control/rate_table.h"
#include "cache-node/control/savings_table.h"
#include "cache-node/control/store_table.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/retention/effects.h"
#include "cache-node/serving/live_memory.h"
#include "cache-node/serving/node_dataset.h"
#include "cache-node/serving/peer_links.h"
#include "cache-node/trust/authorizer.h"
#include "cache-node/trust/node_visitors.h"
#include "coordination/state.h"
#include "net/connection.h"
#include "wire/messages.h"

namespace optcache::node {

// Used on the loop's thread only.
class MessageRouter {
 public:
  // What hears messages. It outlives this.
  struct Parts {
    StreamTable& streams;
    StoreTable& stores;
    SavingsTable& savings;
    RateTable& rates;
    LiveMemory& live_memory;
    const Datasets& datasets;
    Effects& effects;  // which answers them
    // Both null on a laptop.
    Authorizer* authorizer = nullptr;
    NodeVisitors* visitors = nullptr;
  };
  struct Hooks {
    std::function<const coordination::DesiredState&()> state;  // the one in force
    // In a cluster: a pod of this machine reads this Dataset.
    std::function<void(const std::string& dataset)> used;
  };
  MessageRouter(const Clock& clock, Parts parts, Hooks hooks)
      : clock_(clock), parts_(parts), hooks_(std::move(hooks)) {}

  // As net::ConnectionHandler calls them. A message that its sender may not say here is answered as
  // far as somebody waits for an answer, and the connection goes on for others. One that a node
  // never gets closes it with kInvalidArgument.
  void OnMessage(net::Connection& from, std::uint32_t request_id, wire::Message message);
  net::PayloadSink OnPayloadStart(net::Connection& from, std::uint32_t request_id,
                                  const wire::Message& message, ByteCount length);
  void OnPayload(net::Connection& from, std::uint32_t request_id, wire::Message message,
                 const Status& received);
  void OnClosed(ClientId client);

  // Tells sidecars what they may ask of their stores.
  void TellShares();
  // About ten times a second: announcements by the state in force, tokens by the time, and shares
  // where sidecars ask that did not ask when they were told last.
  void LookAtClients();

 private:
  struct Call;    // what comes with a message
  class Hearing;  // both have an overload for each message
  class Declining;
  // A payload that is being received: where it goes, and whose budget it was taken from.
  struct Incoming {
    std::shared_ptr<cache::SampleBytes> buffer;
    std::weak_ptr<NodeDataset> reserved_by;
  };

  Status Admit(ClientId client, wire::Message& message);
  std::shared_ptr<NodeDataset> Find(wire::DatasetKey key) const;
  PutTerms TermsOf(ClientId client, const NodeDataset& dataset);
  void Attach(ClientId client, const wire::StreamAttach& attach);
  // The uid of the pod at the other end; empty: that is not known.
  std::string PodOf(ClientId client) const;

  const Clock& clock_;
  Parts parts_;
  Hooks hooks_;
  std::map<ClientId, Incoming> incoming_;
  bool shares_are_due_ = false;
  LogLimit attach_log_;
};

}  // namespace optcache::node
