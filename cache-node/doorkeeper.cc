#include "cache-node/doorkeeper.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cache-node/access.h"

namespace optcache::node {
namespace {

constexpr auto kInvitedFor = std::chrono::seconds(30);

}  // namespace

void Doorkeeper::Authorize(const wire::Hello& hello, const net::PeerInfo& peer,
                           std::function<void(Status)> decide) {
  if (hello.role == wire::Role::kNode) return decide(IsNode(hello, peer));
  tokens_.Check(hello.token, peer, [this, hello, peer, decide](const Result<Caller>& caller) {
    if (!caller) {
      const bool bad = caller.error().code() == Code::kPermissionDenied;
      refusals_.Note(bad ? Refused::kToken : Refused::kReview, hello.name + " at " + peer.address,
                     caller.error().message());
      return decide(caller.error());
    }
    decide(Invite(hello, peer, *caller));
  });
}

// By a certificate that is also for its name: no node speaks for another.
Status Doorkeeper::IsNode(const wire::Hello& hello, const net::PeerInfo& peer) {
  if (peer.Is(hello.name)) return OkStatus();
  const std::string why =
      fmt::format("this peer says that it is node {}; its certificate is for another", hello.name);
  refusals_.Note(Refused::kCertificate, peer.address, why);
  return {Code::kPermissionDenied, why};
}

Status Doorkeeper::Invite(const wire::Hello& hello, const net::PeerInfo& peer,
                          const Caller& caller) {
  if (Status status = MayConnect(caller, hello); !status.ok()) {
    return Refuse(Refused::kPod, caller, std::move(status));
  }
  if (!options_.machine.empty() && !caller.machine.empty() && caller.machine != options_.machine) {
    return Refuse(
        Refused::kPod, caller,
        {Code::kPermissionDenied, fmt::format("the token is of a pod on {}, this node serves {}",
                                              caller.machine, options_.machine)});
  }
  const MonotonicTime now = clock_.Now();
  std::erase_if(invited_, [now](const auto& one) { return now - one.second.since >= kInvitedFor; });
  const auto is_of_namespace = [&](const auto& one) {
    return one.second.caller.name_space == caller.name_space;
  };
  const auto same = std::ranges::count_if(visitors_, is_of_namespace) +
                    std::ranges::count_if(invited_, is_of_namespace);
  if (std::cmp_greater_equal(same, options_.limits.connections)) {
    return Refuse(Refused::kLimit, caller,
                  {Code::kResourceExhausted,
                   fmt::format("namespace {} has {} connections to this node already",
                               caller.name_space, same)});
  }
  invited_[peer.address] = {.caller = caller, .since = now};
  return OkStatus();
}

Status Doorkeeper::OnOpen(ClientId client, const net::Connection& connection) {
  if (connection.peer_role() == wire::Role::kNode) return OkStatus();
  const auto invited = invited_.extract(connection.address());
  if (!invited) return {Code::kPermissionDenied, "nobody has checked this token"};
  visitors_[client] = {.caller = std::move(invited.mapped().caller), .connection = &connection};
  return OkStatus();
}

void Doorkeeper::OnClosed(ClientId client) {
  visitors_.erase(client);
}

const Caller* Doorkeeper::Find(ClientId client) const {
  const auto found = visitors_.find(client);
  return found == visitors_.end() ? nullptr : &found->second.caller;
}

Status Doorkeeper::Refuse(Refused reason, const Caller& caller, Status why) {
  refusals_.Note(reason, NameOf(caller), why.message());
  return why;
}

Status Doorkeeper::MayUseDataset(const Caller& caller, wire::DatasetKey key) {
  const coordination::DatasetState* dataset = FindDataset(state_(), key);
  if (dataset == nullptr) return OkStatus();  // nothing is known of it here
  Status status = MayUse(caller, *dataset);
  return status.ok() ? status : Refuse(Refused::kNamespace, caller, std::move(status));
}

Status Doorkeeper::MaySay(ClientId client, const wire::Message& message) {
  const auto found = visitors_.find(client);
  if (found == visitors_.end()) return OkStatus();  // a node
  Visitor& visitor = found->second;
  if (const auto* get = std::get_if<wire::Get>(&message)) {
    if (get->mode == wire::GetMode::kPeer) {
      return Refuse(Refused::kCertificate, visitor.caller,
                    {Code::kPermissionDenied, "only nodes read as nodes do"});
    }
    return MayUseDataset(visitor.caller, get->dataset);
  }
  if (const auto* put = std::get_if<wire::Put>(&message)) {
    return MayUseDataset(visitor.caller, put->dataset);
  }
  if (const auto* lease = std::get_if<wire::LeaseUpdate>(&message)) {
    return MayUseDataset(visitor.caller, lease->dataset);
  }
  if (const auto* progress = std::get_if<wire::StreamProgress>(&message)) {
    if (progress->ended) visitor.streams.erase({progress->stream, progress->rank});
    return OkStatus();
  }
  const auto* attach = std::get_if<wire::StreamAttach>(&message);
  return attach == nullptr ? OkStatus() : AnnounceStream(visitor, *attach);
}

Status Doorkeeper::AnnounceStream(Visitor& visitor, const wire::StreamAttach& attach) {
  if (Status status = MayAnnounce(visitor.caller, attach, state_()); !status.ok()) {
    return Refuse(Refused::kStream, visitor.caller, std::move(status));
  }
  const std::pair<StreamId, Rank> reader(attach.stream, attach.rank);
  if (visitor.streams.contains(reader)) return OkStatus();
  std::size_t streams = 0;
  for (const auto& [_, other] : visitors_) {
    if (other.caller.name_space == visitor.caller.name_space) streams += other.streams.size();
  }
  if (streams >= options_.limits.streams) {
    return Refuse(Refused::kLimit, visitor.caller,
                  {Code::kResourceExhausted,
                   fmt::format("namespace {} reads {} streams through this node already",
                               visitor.caller.name_space, streams)});
  }
  visitor.streams.insert(reader);
  return OkStatus();
}

bool Doorkeeper::MayStore(ClientId client, wire::DatasetKey key) const {
  const Caller* caller = Find(client);
  const coordination::DatasetState* dataset = FindDataset(state_(), key);
  return caller == nullptr || dataset == nullptr || MayUse(*caller, *dataset).ok();
}

Status Doorkeeper::WithinLimits(ClientId client,
                                const std::function<std::size_t(ClientId)>& leases) {
  const Caller* caller = Find(client);
  if (caller == nullptr) return OkStatus();
  ByteCount queued = 0;
  std::size_t taken = 0;
  for (const auto& [id, visitor] : visitors_) {
    if (visitor.caller.name_space != caller->name_space) continue;
    queued += visitor.connection->queued_bytes();
    taken += leases(id);
  }
  const NamespaceLimits& limits = options_.limits;
  if (queued < limits.queued_bytes && taken < limits.leases) return OkStatus();
  return Refuse(
      Refused::kLimit, *caller,
      {Code::kResourceExhausted, fmt::format("namespace {} leaves {} of answers and {} leases open",
                                             caller->name_space, FormatBytes(queued), taken)});
}

}  // namespace optcache::node
