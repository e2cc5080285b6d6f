// The node's connections: who is at the other end, what is sent there, and what ends with each.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
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

net::Connection* Node::ConnectionTo(wire::MemberId member) {
  const auto peer = peers_by_id_.find(member);
  if (peer == peers_by_id_.end()) return nullptr;
  net::Connection* connection = peers_->Get(peer->second.address);
  if (connection == nullptr) return nullptr;
  const bool is_it = connection->peer_name() == peer->second.name &&
                     (!cluster_ || connection->peer().Is(peer->second.name));
  if (!is_it) {
    connection->Close({Code::kConflict, "at " + peer->second.address + " is node " +
                                            connection->peer_name() + ", not " +
                                            peer->second.name});
    return nullptr;
  }
  return connection;
}

bool Node::Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
                const cache::SampleRef& payload) {
  net::Connection* const connection = peer_watch_.IsSilent(to) ? nullptr : ConnectionTo(to);
  if (connection == nullptr) return false;
  if (payload) {
    connection->Send(request_id, message, payload->bytes(), payload);
  } else {
    connection->Send(request_id, message);
  }
  return true;
}

void Node::Forget(net::Connection& gone) {
  const ClientId client = IdOf(gone);
  const auto open = connections_.extract(client);
  router_->OnClosed(client);
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

// Who is silent is asked for nothing but whether it is there, by a question about no sample, and is
// taken to be gone until it speaks.
void Node::WatchPeers() {
  std::map<wire::MemberId, PeerWatch::Peer> by_member;
  for (const auto& [_, link] : connections_) {
    if (link.member == 0) continue;
    PeerWatch::Peer& peer = by_member[link.member];
    peer.member = link.member;
    peer.received_bytes += link.connection->received_bytes();
  }
  for (const auto& [_, dataset] : datasets_) {
    dataset->cache().VisitAwaited([&by_member](wire::MemberId member) {
      const auto peer = by_member.find(member);
      if (peer != by_member.end()) peer->second.awaited = true;
    });
  }
  std::vector<PeerWatch::Peer> peers;
  for (const auto& [_, peer] : by_member)
    peers.push_back(peer);
  const PeerWatch::Found found = peer_watch_.Look(peers, clock_.Now());
  const auto log = [this](const char* what, wire::MemberId member) {
    const auto peer = peers_by_id_.find(member);
    Log(LogLevel::kWarning, what,
        {{"node", peer == peers_by_id_.end() ? std::to_string(member) : peer->second.name}});
  };
  for (const wire::MemberId member : found.to_ask) {
    if (net::Connection* const connection = ConnectionTo(member); connection != nullptr)
      connection->Send(NewRequestId(), wire::Lookup{.want_lease = false});
  }
  for (const wire::MemberId member : found.fell_silent) {
    ++peer_silences_;
    log("a node is silent, what it holds is read from the store", member);
    for (auto& [_, dataset] : datasets_)
      dataset->cache().OnPeerGone(member);
  }
  for (const wire::MemberId member : found.spoke)
    log("a node that was silent is there again", member);
}

// Answers that are not taken keep samples in memory that the cache has dropped.
void Node::FreeUntaken() {
  ByteCount charged = 0;
  for (const auto& [_, dataset] : datasets_)
    charged += dataset->cache().tier().in_memory();
  if (!live_memory_.IsHeldUp(cache::SampleBytes::LiveBytes(), charged, clock_.Now())) return;
  const auto queued = [](const auto& connection) {
    return connection.second.connection->queued_bytes();
  };
  const auto most = std::ranges::max_element(connections_, {}, queued);
  if (most == connections_.end() || queued(*most) == 0) return;
  ++untaken_closed_;
  most->second.connection->Close(
      {Code::kResourceExhausted, fmt::format("{} of answers were not taken, and memory is short",
                                             FormatBytes(queued(*most)))});
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
