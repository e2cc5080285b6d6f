// Keeps the node's connections in one table, those that it dials and those that come.
//
// A state names the other members, and the pool dials each of them. Those dial this one, too: what
// is asked of a member goes on the connection that was dialed, and its answer comes there. Which
// member is at the other end is known of an accepted node by its Hello, of a dialed one by its
// address. That it is the right one, ConnectionTo checks at each use.

#include "cache-node/serving/peer_links.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/log.h"

namespace optcache::node {
namespace {

void SendOn(net::Connection& connection, std::uint32_t request_id, const wire::Message& message,
            const cache::SampleRef& payload) {
  if (payload) {
    connection.Send(request_id, message, payload->bytes(), payload);
  } else {
    connection.Send(request_id, message);
  }
}

}  // namespace

void PeerLinks::SetMembers(wire::MemberId self, const std::vector<coordination::Member>& members) {
  std::map<wire::MemberId, Peer> peers;
  for (const auto& member : members) {
    if (self != 0 && member.name != options_.name)
      peers[member.id] = {.name = member.name, .address = member.address};
  }
  if (self != 0 && self != self_) DialAs(self);
  for (const auto& [member, peer] : peers_) {
    if (!peers.contains(member)) pool_->Drop(peer.address);
  }
  peers_ = std::move(peers);
  for (const auto& [_, peer] : peers_)
    pool_->Keep(peer.address);
}

void PeerLinks::DialAs(wire::MemberId self) {
  self_ = self;
  peers_.clear();
  net::DialOptions dial{.hello = {.role = wire::Role::kNode, .name = options_.name, .member = self},
                        .tls = options_.tls};
  pool_ = std::make_unique<net::ClientPool>(
      loop_,
      net::ClientPoolOptions{.dial = std::move(dial), .seed = options_.seed, .label = "peers"},
      handler_);
}

void PeerLinks::OnOpen(net::Connection& connection) {
  links_[IdOf(connection)] = LinkOf(connection);
}

PeerLinks::Link PeerLinks::LinkOf(net::Connection& connection) const {
  Link link{.connection = &connection, .member = connection.peer_member()};
  if (link.member != 0 || connection.peer_role() != wire::Role::kNode) return link;
  const auto peer = std::ranges::find_if(peers_, [&connection](const auto& one) {
    return one.second.address == connection.address();
  });
  link.dialed = peer != peers_.end();
  if (link.dialed) link.member = peer->first;
  return link;
}

// A node that ends takes all connections with it. One of them alone may fail by itself: then its
// readers go on, and what they hold leases for is theirs.
std::optional<PeerLinks::Lost> PeerLinks::OnClosed(const net::Connection& connection) {
  const auto open = links_.extract(IdOf(connection));
  if (!open || open.mapped().member == 0) return std::nullopt;
  const Link& lost = open.mapped();
  const bool gone = std::ranges::none_of(
      links_, [&lost](const auto& link) { return link.second.member == lost.member; });
  return Lost{.member = lost.member, .gone = gone, .dialed = lost.dialed};
}

bool PeerLinks::Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
                      const cache::SampleRef& payload) {
  const auto link = links_.find(to);
  if (link == links_.end()) return false;
  SendOn(*link->second.connection, request_id, message, payload);
  return true;
}

bool PeerLinks::Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
                     const cache::SampleRef& payload) {
  net::Connection* const connection = watch_.IsSilent(to) ? nullptr : ConnectionTo(to);
  if (connection == nullptr) return false;
  SendOn(*connection, request_id, message, payload);
  return true;
}

net::Connection* PeerLinks::ConnectionTo(wire::MemberId member) {
  const auto peer = peers_.find(member);
  if (peer == peers_.end()) return nullptr;
  net::Connection* connection = pool_->Get(peer->second.address);
  if (connection == nullptr) return nullptr;
  const bool is_it = connection->peer_name() == peer->second.name &&
                     (!options_.tls || connection->peer().Is(peer->second.name));
  if (!is_it) {
    connection->Close({Code::kConflict, "at " + peer->second.address + " is node " +
                                            connection->peer_name() + ", not " +
                                            peer->second.name});
    return nullptr;
  }
  return connection;
}

std::vector<wire::MemberId> PeerLinks::Watch(const std::set<wire::MemberId>& awaited) {
  std::map<wire::MemberId, PeerWatch::Peer> by_member;
  for (const auto& [_, link] : links_) {
    if (link.member == 0) continue;
    PeerWatch::Peer& peer = by_member[link.member];
    peer.member = link.member;
    peer.received_bytes += link.connection->received_bytes();
    peer.awaited = awaited.contains(link.member);
  }
  std::vector<PeerWatch::Peer> peers;
  for (const auto& [_, peer] : by_member)
    peers.push_back(peer);
  PeerWatch::Found found = watch_.Look(peers, clock_.Now());
  for (const wire::MemberId member : found.to_ask) {
    // By a question about no sample.
    if (net::Connection* const connection = ConnectionTo(member); connection != nullptr)
      connection->Send(NewRequestId(), wire::Lookup{.want_lease = false});
  }
  silences_ += found.fell_silent.size();
  for (const wire::MemberId member : found.fell_silent)
    Log(LogLevel::kWarning, "a node is silent, what it holds is read from the store",
        {{"node", NameOf(member)}});
  for (const wire::MemberId member : found.spoke)
    Log(LogLevel::kWarning, "a node that was silent is there again", {{"node", NameOf(member)}});
  return std::move(found.fell_silent);
}

std::string PeerLinks::NameOf(wire::MemberId member) const {
  const auto peer = peers_.find(member);
  return peer == peers_.end() ? std::to_string(member) : peer->second.name;
}

void PeerLinks::CloseFullest() {
  const auto queued = [](const auto& link) { return link.second.connection->queued_bytes(); };
  const auto most = std::ranges::max_element(links_, {}, queued);
  if (most == links_.end() || queued(*most) == 0) return;
  ++untaken_closed_;
  most->second.connection->Close(
      {Code::kResourceExhausted, fmt::format("{} of answers were not taken, and memory is short",
                                             FormatBytes(queued(*most)))});
}

void PeerLinks::VisitCounters(const CounterVisitor& visit) const {
  visit(MetricKind::kGauge, "optcache_silent_peers", {}, static_cast<double>(watch_.silent()));
  visit(MetricKind::kCounter, "optcache_peer_silences_total", {}, static_cast<double>(silences_));
  visit(MetricKind::kCounter, "optcache_untaken_answers_closed_total", {},
        static_cast<double>(untaken_closed_));
  if (pool_) pool_->VisitCounters(visit);
}

}  // namespace optcache::node
