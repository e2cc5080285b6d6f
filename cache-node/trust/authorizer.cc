// Ties each open connection of a pod to the caller that its token proves, and judges each message
// by it.
//
// A token is reviewed before the connection is open. The proof waits in `invited_` under the
// connection's address, and OnOpen moves it to `visitors_`. A client that is not in `visitors_` is
// a node: it has shown a certificate for its name. The rules are those of access.h, asked with the
// desired state in force. Announcements that are refused are kept, too, at most as many as may be
// granted. When the state changes, or a stream or a visitor has gone, JudgeAnew judges all of them
// again. CheckTokens reviews each token when its proof has run out. If the API server cannot be
// asked, a token that names its expiry is good until then.

#include "cache-node/trust/authorizer.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "cache-node/trust/access.h"
#include "coordination/desired_state.h"

namespace optcache::node {
namespace {

constexpr auto kInvitedFor = std::chrono::seconds(30);
constexpr auto kAskAgain = std::chrono::seconds(10);  // where nobody could review a token

}  // namespace

void Authorizer::Authorize(const wire::Hello& hello, const net::PeerInfo& peer,
                           std::function<void(Status)> decide) {
  if (hello.role == wire::Role::kNode) return decide(IsNode(hello, peer));
  tokens_.Check(hello.token, peer,
                [this, hello, peer, decide](const Result<Caller>& caller, MonotonicTime until) {
                  if (!caller) {
                    const bool bad = caller.error().code() == Code::kPermissionDenied;
                    refusal_counters_.Note(bad ? Refused::kToken : Refused::kReview,
                                           hello.name + " at " + peer.address,
                                           caller.error().message());
                    return decide(caller.error());
                  }
                  decide(Invite(hello, peer, *caller, until));
                });
}

// By a certificate that is also for its name: no node speaks for another.
Status Authorizer::IsNode(const wire::Hello& hello, const net::PeerInfo& peer) {
  if (peer.Is(hello.name)) return OkStatus();
  const std::string why =
      fmt::format("this peer says that it is node {}; its certificate is for another", hello.name);
  refusal_counters_.Note(Refused::kCertificate, peer.address, why);
  return {Code::kPermissionDenied, why};
}

Status Authorizer::Invite(const wire::Hello& hello, const net::PeerInfo& peer, const Caller& caller,
                          MonotonicTime until) {
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
    return one.second.proof.caller.name_space == caller.name_space;
  };
  const auto same = std::ranges::count_if(visitors_, is_of_namespace) +
                    std::ranges::count_if(invited_, is_of_namespace);
  if (std::cmp_greater_equal(same, options_.limits.connections)) {
    return Refuse(Refused::kLimit, caller,
                  {Code::kResourceExhausted,
                   fmt::format("namespace {} has {} connections to this node already",
                               caller.name_space, same)});
  }
  invited_[peer.address] = {.proof = {.caller = caller, .token = hello.token, .until = until},
                            .since = now};
  return OkStatus();
}

Status Authorizer::OnOpen(ClientId client, net::Connection& connection) {
  if (connection.peer_role() == wire::Role::kNode) return OkStatus();
  auto invited = invited_.extract(connection.address());
  if (!invited) return {Code::kPermissionDenied, "this token was not checked"};
  visitors_[client] = {.proof = std::move(invited.mapped().proof), .connection = &connection};
  return OkStatus();
}

void Authorizer::OnClosed(ClientId client) {
  if (visitors_.erase(client) > 0) judge_anew_ = true;
}

const Caller* Authorizer::Find(ClientId client) const {
  const auto found = visitors_.find(client);
  return found == visitors_.end() ? nullptr : &found->second.proof.caller;
}

Status Authorizer::Refuse(Refused reason, const Caller& caller, Status why) {
  refusal_counters_.Note(reason, NameOf(caller), why.message());
  return why;
}

Status Authorizer::MayUseDataset(const Caller& caller, wire::DatasetKey key) const {
  const coordination::DatasetState* dataset = coordination::FindDataset(state_(), key);
  if (dataset != nullptr) return MayUse(caller, *dataset);
  if (options_.held && Owns(caller.name_space, options_.held(key))) return OkStatus();
  return {Code::kNotFound, "this node knows no such dataset"};
}

Status Authorizer::MayReadOrWrite(const Caller& caller, wire::DatasetKey key) {
  Status status = MayUseDataset(caller, key);
  if (status.code() != Code::kPermissionDenied) return status;
  return Refuse(Refused::kNamespace, caller, std::move(status));
}

// A borrower reads the source with keys and by ways of its own: what it meets there is no news of
// the Dataset. It is no offence either.
Status Authorizer::MayTellOfStore(const Caller& caller, wire::DatasetKey key) {
  RETURN_IF_ERROR(MayReadOrWrite(caller, key));
  const coordination::DatasetState* dataset = coordination::FindDataset(state_(), key);
  if (dataset != nullptr && Owns(caller.name_space, dataset->name)) return OkStatus();
  return {Code::kPermissionDenied, "only pods of the Dataset's own namespace tell of its store"};
}

// --- Messages -----------------------------------------------------------------------------------

// What a visitor may say; a message without its overload does not compile.
class Authorizer::Judging {
 public:
  Judging(Authorizer& door, Visitor& visitor)
      : door_(door), visitor_(visitor), caller_(visitor.proof.caller) {}

  Status operator()(const wire::Get& get) const {
    if (get.mode == wire::GetMode::kPeer) return Refuse("only nodes read as nodes do");
    return door_.MayReadOrWrite(caller_, get.dataset);
  }
  Status operator()(const wire::Put& put) const {
    return door_.MayReadOrWrite(caller_, put.dataset);
  }
  Status operator()(const wire::LeaseUpdate& update) const {
    return door_.MayReadOrWrite(caller_, update.dataset);
  }
  Status operator()(const wire::StoreHealth& health) const {
    return door_.MayTellOfStore(caller_, health.dataset);
  }
  Status operator()(const wire::Savings& savings) const {
    return door_.MayReadOrWrite(caller_, savings.dataset);
  }
  // Said each second: no offence of its own.
  Status operator()(const wire::StoreDemand& demand) const {
    return door_.MayUseDataset(caller_, demand.dataset);
  }
  Status operator()(const wire::StreamAttach& attach) const {
    return door_.AnnounceStream(visitor_, attach);
  }
  Status operator()(const wire::StreamOrder& order) const {
    const auto stream = visitor_.streams.find({order.stream, order.rank});
    if (stream != visitor_.streams.end()) stream->second.order = order;
    return OkStatus();
  }
  Status operator()(const wire::StreamProgress& progress) const {
    const bool ends =
        progress.ended && visitor_.streams.erase({progress.stream, progress.rank}) > 0;
    if (ends) door_.judge_anew_ = true;
    return OkStatus();
  }
  // These are heard only of ranks that this client has announced (StreamTable).
  Status operator()(const wire::StreamTrace& /*part*/) const { return OkStatus(); }
  Status operator()(const wire::StreamPassEnd& /*end*/) const { return OkStatus(); }
  // Connections take it themselves, and end.
  Status operator()(const wire::Refusal& /*refusal*/) const { return OkStatus(); }
  template <typename M>
    requires((M::kAbout.directions & wire::kSidecarToNode) == 0)
  Status operator()(const M& /*message*/) const {
    return Refuse(fmt::format("a pod may not send {}", M::kAbout.name));
  }

 private:
  Status Refuse(std::string why) const {
    return door_.Refuse(Refused::kCertificate, caller_, {Code::kPermissionDenied, std::move(why)});
  }

  Authorizer& door_;
  Visitor& visitor_;
  const Caller& caller_;
};

Status Authorizer::AuthorizeMessage(ClientId client, const wire::Message& message) {
  const auto found = visitors_.find(client);
  if (found == visitors_.end()) return OkStatus();  // a node
  return std::visit(Judging(*this, found->second), message);
}

bool Authorizer::MayStore(ClientId client, wire::DatasetKey key) const {
  const Caller* caller = Find(client);
  return caller == nullptr || MayUseDataset(*caller, key).ok();
}

// --- Streams ------------------------------------------------------------------------------------

// What is refused is kept, within the same limit, for when it may be: nobody announces it again.
Status Authorizer::AnnounceStream(Visitor& visitor, const wire::StreamAttach& attach) {
  const Caller& caller = visitor.proof.caller;
  const std::pair<StreamId, Rank> reader(attach.stream, attach.rank);
  const auto known = visitor.streams.find(reader);
  const bool is_known = known != visitor.streams.end();
  const bool is_granted = is_known && known->second.granted;
  Status status = JudgeStream(caller, {.attach = attach, .granted = is_granted});
  if (status.ok()) {
    visitor.streams.insert_or_assign(reader, Announced{.attach = attach, .granted = true});
    return status;
  }
  const bool may_wait =
      is_known ? !is_granted
               : CountStreams(caller.name_space, /*granted=*/false) < options_.limits.streams;
  if (may_wait) visitor.streams.insert_or_assign(reader, Announced{.attach = attach});
  const bool full = status.code() == Code::kResourceExhausted;
  return Refuse(full ? Refused::kLimit : Refused::kStream, caller, std::move(status));
}

Status Authorizer::JudgeStream(const Caller& caller, const Announced& stream) const {
  RETURN_IF_ERROR(MayAnnounce(caller, stream.attach, state_()));
  if (stream.granted) return OkStatus();
  const std::size_t streams = CountStreams(caller.name_space, /*granted=*/true);
  if (streams < options_.limits.streams) return OkStatus();
  return {Code::kResourceExhausted, fmt::format("namespace {} reads {} streams through this node "
                                                "already",
                                                caller.name_space, streams)};
}

std::size_t Authorizer::CountStreams(const std::string& name_space, bool granted) const {
  std::size_t count = 0;
  for (const auto& [_, visitor] : visitors_) {
    if (visitor.proof.caller.name_space != name_space) continue;
    count += static_cast<std::size_t>(std::ranges::count_if(
        visitor.streams, [granted](const auto& one) { return one.second.granted == granted; }));
  }
  return count;
}

std::vector<JudgedAnew> Authorizer::JudgeAnew() {
  std::vector<JudgedAnew> judged;
  if (!std::exchange(judge_anew_, false)) return judged;
  for (auto& [client, visitor] : visitors_) {
    const Caller& caller = visitor.proof.caller;
    for (auto& [_, stream] : visitor.streams) {
      const Status status = JudgeStream(caller, stream);
      if (status.ok() == stream.granted) continue;
      stream.granted = status.ok();
      judged.push_back({.client = client,
                        .attach = stream.attach,
                        .order = stream.order,
                        .granted = stream.granted});
      if (stream.granted) continue;
      judge_anew_ = true;  // there is room for another
      refusal_counters_.Note(Refused::kStream, NameOf(caller), status.message());
    }
  }
  return judged;
}

// --- Tokens of open connections -----------------------------------------------------------------

void Authorizer::CheckTokens() {
  const MonotonicTime now = clock_.Now();
  for (auto& [client, visitor] : visitors_) {
    if (!visitor.in_review && now >= visitor.proof.until) CheckToken(client, visitor);
  }
}

void Authorizer::CheckToken(ClientId client, Visitor& visitor) {
  const std::string& token = visitor.proof.token;
  const std::optional<double> expiry = ExpiryOf(token);
  if (expiry && clock_.UnixSeconds() >= *expiry) {
    return visitor.connection->Close({Code::kUnavailable,
                                      "the token that this connection began with has expired: "
                                      "connect again with a fresh one"});
  }
  visitor.in_review = true;
  tokens_.Check(token, visitor.connection->peer(),
                [this, client](const Result<Caller>& caller, MonotonicTime until) {
                  OnChecked(client, caller, until);
                });
}

void Authorizer::OnChecked(ClientId client, const Result<Caller>& caller, MonotonicTime until) {
  const auto found = visitors_.find(client);
  if (found == visitors_.end()) return;  // gone meanwhile
  auto& [_, visitor] = *found;
  visitor.in_review = false;
  if (caller && *caller == visitor.proof.caller) {
    visitor.proof.until = until;
    return;
  }
  const Status why =
      caller ? Status(Code::kPermissionDenied, "the token is of another by now") : caller.error();
  if (why.code() != Code::kPermissionDenied && ExpiryOf(visitor.proof.token)) {
    visitor.proof.until = clock_.Now() + kAskAgain;
    return;
  }
  const bool bad = why.code() == Code::kPermissionDenied;
  visitor.connection->Close(
      Refuse(bad ? Refused::kToken : Refused::kReview, visitor.proof.caller, why));
}

// --- Limits -------------------------------------------------------------------------------------

Status Authorizer::WithinLimits(ClientId client,
                                const std::function<std::size_t(ClientId)>& leases) {
  const Caller* caller = Find(client);
  if (caller == nullptr) return OkStatus();
  ByteCount queued = 0;
  std::size_t taken = 0;
  for (const auto& [id, visitor] : visitors_) {
    if (visitor.proof.caller.name_space != caller->name_space) continue;
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
