// The node's connections: who is at the other end, what is sent there, and what ends with each.

#include <algorithm>
#include <utility>

#include "cache-node/node.h"

namespace optcache::node {

void Node::DialPeersAs(wire::MemberId self) {
  net::DialOptions dial{
      .hello = {.role = wire::Role::kNode, .name = options_.name, .member = self}};
  if (cluster_) dial.tls = cluster_->client_tls();
  peers_ = std::make_unique<net::ClientPool>(
      loop_,
      net::ClientPoolOptions{
          .dial = std::move(dial), .seed = options_.incarnation, .label = "peers"},
      wiring_);
}

bool Node::Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
                 const cache::SampleRef& payload) {
  const auto it = connections_.find(to);
  if (it == connections_.end()) return false;
  if (payload) {
    it->second.connection->Send(request_id, message, payload->bytes(), payload);
  } else {
    it->second.connection->Send(request_id, message);
  }
  return true;
}

bool Node::Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
                const cache::SampleRef& payload) {
  const auto peer = peers_by_id_.find(to);
  if (peer == peers_by_id_.end()) return false;
  net::Connection* connection = peers_->Get(peer->second.address);
  if (connection == nullptr) return false;
  const bool is_it = connection->peer_name() == peer->second.name &&
                     (!cluster_ || connection->peer().Is(peer->second.name));
  if (!is_it) {
    connection->Close({Code::kConflict, "at " + peer->second.address + " is node " +
                                            connection->peer_name() + ", not " +
                                            peer->second.name});
    return false;
  }
  if (payload) {
    connection->Send(request_id, message, payload->bytes(), payload);
  } else {
    connection->Send(request_id, message);
  }
  return true;
}

void Node::Forget(net::Connection& gone) {
  const ClientId client = IdOf(gone);
  if (const auto node = incoming_.extract(client)) {
    if (const auto dataset = node.mapped().reserved_by.lock()) {
      dataset->cache().Abandon(node.mapped().buffer);
    }
  }
  const auto open = connections_.extract(client);
  for (auto& [_, dataset] : datasets_)
    dataset->cache().OnClientGone(client, clock_.Now());
  streams_.OnClosed(client);
  stores_.OnClosed(client);
  if (cluster_) cluster_->doorkeeper().OnClosed(client);
  if (open && open.mapped().member != 0) LosePeer(open.mapped());
}

Node::Link Node::LinkOf(net::Connection& connection) const {
  Link link{.connection = &connection, .member = connection.peer_member()};
  if (link.member != 0 || connection.peer_role() != wire::Role::kNode) return link;
  const auto peer = std::ranges::find_if(peers_by_id_, [&connection](const auto& one) {
    return one.second.address == connection.address();
  });
  link.dialed = peer != peers_by_id_.end();
  if (link.dialed) link.member = peer->first;
  return link;
}

// A node that ends takes all connections with it. One of them alone may fail by itself: then its
// readers go on, and what they hold leases for is theirs.
void Node::LosePeer(const Link& lost) {
  const bool gone = std::ranges::none_of(connections_, [&lost](const auto& connection) {
    return connection.second.member == lost.member;
  });
  for (auto& [_, dataset] : datasets_) {
    if (gone) {
      dataset->cache().OnPeerGone(lost.member);
    } else if (lost.dialed) {
      dataset->cache().OnLinkLost(lost.member);
    }
  }
}

}  // namespace optcache::node
