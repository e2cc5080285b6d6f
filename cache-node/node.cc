// Starts and stops the node, and brings each message to the part that decides about it.
//
//   sidecars, nodes ─► Wiring ─┬─► Handle ─► DatasetCache, StreamTable, StoreTable, ...
//                              └─► PlacePayload ─► TakePayload ─► DatasetCache (bytes of samples)
//   coordinator ─► ControlClient ─► Apply (node_control.cc) ─► NodeDataset
//   DatasetCache, PushQueue ─► Effects: Reply, Send (node_links.cc) ─► connections
//
// All of it runs on the event loop's thread. PlacePayload finds the buffer of a payload, and its
// room, before its bytes are read. A connection receives one payload at a time, so `incoming_` has
// at most one for each. Answers of peers name no dataset: request ids are unique in the process,
// and only the dataset that asked takes one. Wiring outlives the node, because connections may end
// after it; once it is detached it does nothing.

#include "cache-node/node.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "coordination/desired_state.h"
#include "net/address.h"

namespace optcache::node {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(5);
constexpr std::uint64_t kTicksPerFollow = 20;  // streams are followed ten times a second
constexpr Duration kStopGrace = std::chrono::seconds(5);
constexpr Duration kDrainLook = std::chrono::milliseconds(50);
constexpr std::size_t kMaxUsed = 4 * coordination::kMaxDatasets;  // names that used_ holds

// The dataset that a message speaks of; 0 if it names none.
wire::DatasetKey DatasetOf(const wire::Message& message) {
  return std::visit(
      [](const auto& m) -> wire::DatasetKey {
        if constexpr (requires { m.dataset; }) {
          return m.dataset;
        } else {
          return 0;
        }
      },
      message);
}

}  // namespace

class Node::Wiring final : public net::ConnectionHandler {
 public:
  explicit Wiring(Node& node) : node_(&node) {}
  void Detach() { node_ = nullptr; }

  void OnOpen(net::Connection& connection) override {
    if (node_ == nullptr) return;
    node_->connections_[IdOf(connection)] = node_->LinkOf(connection);
    if (!node_->cluster_) return;
    const Status status = node_->cluster_->authorizer().OnOpen(IdOf(connection), connection);
    if (!status.ok()) connection.Close(status);
  }
  void OnMessage(net::Connection& connection, std::uint32_t request_id,
                 wire::Message message) override {
    if (node_ != nullptr) node_->Handle(connection, request_id, std::move(message));
  }
  net::PayloadSink OnPayloadStart(net::Connection& connection, std::uint32_t request_id,
                                  const wire::Message& message, ByteCount length) override {
    if (node_ == nullptr) return {};
    return node_->PlacePayload(connection, request_id, message, length);
  }
  void OnPayload(net::Connection& connection, std::uint32_t request_id, wire::Message message,
                 Status status) override {
    if (node_ != nullptr) node_->TakePayload(connection, request_id, std::move(message), status);
  }
  void OnClosed(net::Connection& connection, const Status& status) override {
    const auto not_logged = status.ok() ? std::nullopt : log_.Pass(SystemClock().Now());
    if (not_logged) {
      Log(LogLevel::kInfo, "connection closed",
          {{"peer", connection.peer_name()},
           {"why", status.ToString()},
           {"not_logged", *not_logged}});
    }
    if (node_ != nullptr) node_->Forget(connection);
  }

 private:
  Node* node_;
  LogLimit log_;
};

Node::Node(net::EventLoop& loop, const Clock& clock, NodeOptions options)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      wiring_(std::make_shared<Wiring>(*this)),
      live_memory_(options_.memory),
      worker_(loop, clock) {}

Node::~Node() {
  wiring_->Detach();
}

Result<std::unique_ptr<Node>> Node::Start(net::EventLoop& loop, const Clock& clock,
                                          NodeOptions options) {
  std::unique_ptr<Node> node(new Node(loop, clock, std::move(options)));
  RETURN_IF_ERROR(CheckClusterOptions(node->options_.cluster, node->options_.coordinator));
  ASSIGN_OR_RETURN(const net::Address listen, net::ParseAddress(node->options_.listen));
  node->options_.advertise = net::WithPort(node->options_.advertise, listen.port);
  if (node->options_.cluster.enabled()) {
    if (listen.is_unix()) return Error(Code::kInvalidArgument, "--ca needs --listen HOST:PORT");
    RETURN_IF_ERROR(node->JoinCluster());
  }
  if (!node->options_.disk.empty()) {
    ASSIGN_OR_RETURN(node->disk_, NodeDisk::Open(loop, clock, node->options_.disk,
                                                 node->options_.disk_capacity));
  }
  const std::string& name = node->options_.name;
  ASSIGN_OR_RETURN(node->server_, net::Listen(loop, node->options_.listen,
                                              node->cluster_ ? node->cluster_->WireServer(name)
                                                             : net::ServerOptions{.name = name},
                                              node->wiring_));
  if (node->options_.advertise.empty()) node->options_.advertise = node->server_->address();
  RETURN_IF_ERROR(CheckAdvertised(node->options_.advertise));
  if (node->options_.http_port != 0) {
    ASSIGN_OR_RETURN(const net::Address reached, net::ParseAddress(node->options_.advertise));
    const net::Address pages{.host = reached.is_unix() ? node->options_.http_host : reached.host,
                             .port = node->options_.http_port};
    node->metrics_url_ = fmt::format("http://{}/metrics", net::FormatAddress(pages));
  }
  node->ConnectToCoordinator();
  node->Tick();
  node->tick_ = net::PeriodicTimer(loop, kTick, [self = node.get()] { self->Tick(); });
  return node;
}

// Others dial it: an address of "everywhere" would lead them to themselves.
Status Node::CheckAdvertised(const std::string& address) {
  ASSIGN_OR_RETURN(const net::Address parsed, net::ParseAddress(address));
  const bool is_everywhere =
      parsed.host == net::kEverywhere || parsed.host == "0.0.0.0" || parsed.host == "::";
  if (parsed.is_unix() || (!is_everywhere && parsed.port != 0)) return OkStatus();
  return {Code::kInvalidArgument, "other nodes cannot reach this one at " + address +
                                      ": give --advertise HOST:PORT, with this machine's address"};
}

Status Node::Ready() const {
  if (ending_) return {Code::kUnavailable, "draining"};
  if (cluster_) RETURN_IF_ERROR(cluster_->Ready());
  if (self_ == 0) return {Code::kUnavailable, "waiting for the coordinator"};
  const bool complete = std::ranges::all_of(state_.datasets, [this](const auto& dataset) {
    // Who waited for a manifest that is lost would keep out the one that brings it again.
    const bool lost = cluster_ && dataset.manifest_holders.empty();
    return lost || !Serves(dataset) || datasets_.contains(dataset.key);
  });
  if (!complete) return {Code::kUnavailable, "waiting for the datasets' manifests"};
  return OkStatus();
}

void Node::Stop(std::function<void()> done) {
  const bool drains = options_.drain > Duration::zero() && !peers_by_id_.empty();
  const Deadline whole = Deadline::After(clock_, options_.drain);
  if (drains && !ending_) {
    ending_ = {.deadline = whole.at(), .on_disk = options_.disk_at_end};
    for (auto& [_, dataset] : datasets_)
      dataset->OnEnding(*ending_);
    control_->ReportSoon();
  }
  Drain(whole, Deadline::After(clock_, options_.drain / 2),
        [this, done = std::move(done)]() mutable {
          tick_.Cancel();
          server_->Stop(kStopGrace, std::move(done));
        });
}

// Goes on serving meanwhile. What a plan keeps waits for one without this node, which says where it
// goes, but not for long.
void Node::Drain(Deadline deadline, Deadline patience, std::function<void()> done) {
  const MonotonicTime now = clock_.Now();
  const bool over = !ending_ || deadline.Expired(now);
  for (auto& [_, dataset] : datasets_) {
    const bool waits = dataset->AwaitsLastPlan() && !patience.Expired(now);
    if (over || dataset->has_left() || waits) continue;
    Log(LogLevel::kInfo, "giving samples to other nodes",
        {{"dataset", dataset->name()}, {"samples", dataset->GiveAway(now)}});
  }
  const bool left = std::ranges::all_of(datasets_, [](const auto& dataset) {
    return dataset.second->has_left() && dataset.second->cache().push_queue().samples() == 0;
  });
  if (left || over) {
    if (ending_) LogDrain();
    return done();
  }
  drain_ = loop_.After(kDrainLook,
                       [this, deadline, patience, done] { Drain(deadline, patience, done); });
}

void Node::LogDrain() const {
  for (const auto& [_, dataset] : datasets_) {
    const Counters& counters = dataset->cache().counters();
    Log(LogLevel::kInfo, "drained",
        {{"dataset", dataset->name()},
         {"moved", counters.relocated},
         {"bytes", counters.relocated_bytes},
         {"lost", counters.relocations_lost},
         {"not_sent", dataset->cache().push_queue().samples()}});
  }
}

// --- Connections --------------------------------------------------------------------------------

std::shared_ptr<NodeDataset> Node::Find(wire::DatasetKey key) {
  const auto found = datasets_.find(key);
  return found == datasets_.end() ? nullptr : found->second;
}

// For a dataset that is not served, or not yet, or not to that client: nothing is here, nothing is
// taken, and nobody waits for that word.
void Node::AnswerUnknown(ClientId from, std::uint32_t request_id, const wire::Message& message,
                         Code why) {
  if (const auto* get = std::get_if<wire::Get>(&message)) {
    for (std::uint32_t i = 0; i < get->items.size(); ++i) {
      const wire::SampleReply miss{.index = i, .answer = wire::Answer::kMissDrop};
      Reply(from, request_id, miss, nullptr);
    }
  } else if (const auto* lookup = std::get_if<wire::Lookup>(&message)) {
    wire::LookupReply reply{.dataset = lookup->dataset};
    for (const SampleId id : lookup->ids)
      reply.items.push_back({.id = id});
    Reply(from, request_id, reply, nullptr);
  } else if (const auto* put = std::get_if<wire::Put>(&message)) {
    const wire::StoreReply reply{.dataset = put->dataset, .id = put->item.id, .reason = why};
    Reply(from, request_id, reply, nullptr);
  }
}

Status Node::Admit(ClientId client, wire::Message& message) {
  return visitors_ ? visitors_->Admit(client, message) : OkStatus();
}

// Who cannot be listed reads without an order: others on the same connection do not suffer.
void Node::AttachStream(ClientId client, const wire::StreamAttach& attach) {
  if (visitors_) {
    // A name that the state does not list may be made up, each time another.
    if (used_.size() >= kMaxUsed) {
      std::erase_if(used_, [this](const auto& name) {
        return coordination::FindDataset(state_, name) == nullptr;
      });
    }
    OnUsed(attach.dataset_name);
  }
  const Status status = streams_.OnAttach(client, attach);
  const auto not_logged = status.ok() ? std::nullopt : attach_log_.Pass(clock_.Now());
  if (!not_logged) return;
  Log(LogLevel::kWarning, "stream not listed, it reads without an order",
      {{"stream", attach.stream_name}, {"why", status.ToString()}, {"not_logged", *not_logged}});
}

// Whose list is not taken is in no plan.
void Node::TakeTrace(ClientId client, const wire::StreamTrace& part) {
  const Status status = streams_.OnTrace(client, part);
  const auto not_logged = status.ok() ? std::nullopt : attach_log_.Pass(clock_.Now());
  if (!not_logged) return;
  Log(LogLevel::kWarning, "a list of ids is not taken, nothing is planned by it",
      {{"stream", fmt::format("{:016x}", part.stream)},
       {"rank", part.rank},
       {"pass", part.pass},
       {"why", status.ToString()},
       {"not_logged", *not_logged}});
}

// If the dataset is not known, the sidecar tells it again.
void Node::TakeSavings(ClientId client, const wire::Savings& savings) {
  if (const auto* known = coordination::FindDataset(state_, savings.dataset); known != nullptr)
    savings_.OnSavings(client, known->name, savings);
}

void Node::TakeDemand(ClientId client, const wire::StoreDemand& demand) {
  const auto* known = coordination::FindDataset(state_, demand.dataset);
  const std::string name = known == nullptr ? std::string() : known->name;
  if (rates_.OnDemand(client, PodOf(client), name, demand)) shares_are_due_ = true;
}

// The uid of the pod at the other end; empty: that is not known.
std::string Node::PodOf(ClientId client) const {
  const Caller* const caller = cluster_ ? cluster_->authorizer().Find(client) : nullptr;
  return caller == nullptr ? std::string() : caller->pod_uid;
}

void Node::TellShares() {
  shares_are_due_ = false;
  for (const RateTable::Told& told : rates_.Divide(clock_.Now()))
    Reply(told.to, 0, told.share, nullptr);
}

void Node::LookAtVisitors() {
  if (!cluster_) return;
  Authorizer& door = cluster_->authorizer();
  for (const JudgedAnew& judged : door.JudgeAnew()) {
    if (judged.granted) {
      AttachStream(judged.client, judged.attach);
      if (judged.order) streams_.OnOrder(judged.client, *judged.order);
    } else {
      streams_.OnRevoked(judged.client, judged.attach.stream, judged.attach.rank);
    }
  }
  door.CheckTokens();
}

PutTerms Node::TermsOf(ClientId client, const NodeDataset& dataset) {
  if (!visitors_) return {};
  return visitors_->TermsOf(client, dataset.name(), !dataset.digests().empty());
}

void Node::Handle(net::Connection& from, std::uint32_t request_id, wire::Message message) {
  const ClientId client = IdOf(from);
  if (const Status status = Admit(client, message); !status.ok()) {
    if (const auto* demand = std::get_if<wire::StoreDemand>(&message))
      rates_.OnRefused(client, PodOf(client), demand->dataset);
    return AnswerUnknown(client, request_id, message, status.code());
  }
  const MonotonicTime now = clock_.Now();
  if (const auto* progress = std::get_if<wire::StreamProgress>(&message)) {
    return streams_.OnProgress(client, *progress, now);
  }
  if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
    for (auto& [_, one] : datasets_)
      one->cache().OnPeerReply(request_id, *reply, nullptr, now);
    return;
  }
  if (const auto* attach = std::get_if<wire::StreamAttach>(&message)) {
    return AttachStream(client, *attach);
  }
  if (const auto* order = std::get_if<wire::StreamOrder>(&message)) {
    return streams_.OnOrder(client, *order);
  }
  if (const auto* part = std::get_if<wire::StreamTrace>(&message)) {
    return TakeTrace(client, *part);
  }
  if (const auto* end = std::get_if<wire::StreamPassEnd>(&message)) {
    return streams_.OnPassEnd(client, *end);
  }
  if (const auto* health = std::get_if<wire::StoreHealth>(&message)) {
    return stores_.OnHealth(client, *health, now);
  }
  if (const auto* savings = std::get_if<wire::Savings>(&message)) {
    return TakeSavings(client, *savings);
  }
  if (const auto* demand = std::get_if<wire::StoreDemand>(&message)) {
    return TakeDemand(client, *demand);
  }
  const std::shared_ptr<NodeDataset> dataset = Find(DatasetOf(message));
  if (!dataset) return AnswerUnknown(client, request_id, message);
  DatasetCache& cache = dataset->cache();
  if (cluster_ && std::holds_alternative<wire::Get>(message)) {
    const Status within = cluster_->authorizer().WithinLimits(
        client, [&cache](ClientId one) { return cache.leases(one); });
    if (!within.ok()) return AnswerUnknown(client, request_id, message);
  }
  if (const auto* get = std::get_if<wire::Get>(&message)) {
    if (get->stream != 0 && !get->items.empty()) {
      dataset->OnPassSeen(get->stream, get->items.back().pass);
      streams_.OnServed(client, *get);
    }
    cache.OnGet({.client = client,
                 .member = from.peer_member(),
                 .borrower = TermsOf(client, *dataset).borrower},
                request_id, *get, now);
  } else if (const auto* lease = std::get_if<wire::LeaseUpdate>(&message)) {
    if (from.peer_role() == wire::Role::kNode) {
      cache.OnPeerLeaseUpdate(from.peer_member(), *lease, now);
    } else {
      cache.OnLeaseUpdate(client, *lease, now);
    }
  } else if (const auto* lookup = std::get_if<wire::Lookup>(&message)) {
    cache.OnLookup(client, from.peer_member(), request_id, *lookup, now);
  } else if (const auto* found = std::get_if<wire::LookupReply>(&message)) {
    cache.OnLookupReply(request_id, *found, now);
  } else if (const auto* holding = std::get_if<wire::Holding>(&message)) {
    cache.OnHolding(from.peer_member(), *holding);
  } else if (const auto* announce = std::get_if<wire::Announce>(&message)) {
    cache.OnAnnounce(*announce, now);
  } else if (const auto* stored = std::get_if<wire::StoreReply>(&message)) {
    cache.OnStoreReply(request_id, *stored, now);
  }
}

net::PayloadSink Node::PlacePayload(net::Connection& from, std::uint32_t request_id,
                                    const wire::Message& message, ByteCount length) {
  if (!live_memory_.Admits(cache::SampleBytes::LiveBytes(), length)) return {};
  Incoming incoming;
  if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
    for (auto& [_, one] : datasets_) {
      incoming.buffer = one->cache().ReceiveFromPeer(request_id, reply->index, length);
      if (incoming.buffer) break;
    }
  } else if (const auto dataset = Find(DatasetOf(message))) {
    const auto* put = std::get_if<wire::Put>(&message);
    const auto* push = std::get_if<wire::Push>(&message);
    if (cluster_ && put != nullptr && !cluster_->authorizer().MayStore(IdOf(from), put->dataset)) {
      return {};  // refused when the message has come
    }
    if (put != nullptr) {
      const BorrowerId borrower = TermsOf(IdOf(from), *dataset).borrower;
      incoming.buffer =
          dataset->cache().Receive({.id = put->item.id, .borrower = borrower}, length);
    } else if (push != nullptr) {
      incoming.buffer = dataset->cache().ReceivePush(push->item.id, length);
    }
    incoming.reserved_by = dataset;
  }
  if (!incoming.buffer) return {};
  net::PayloadSink sink{.destination = incoming.buffer->writable(), .owner = incoming.buffer};
  incoming_[IdOf(from)] = std::move(incoming);
  return sink;
}

void Node::TakePayload(net::Connection& from, std::uint32_t request_id, wire::Message message,
                       const Status& status) {
  const ClientId client = IdOf(from);
  const MonotonicTime now = clock_.Now();
  Incoming incoming;
  if (auto node = incoming_.extract(client)) incoming = std::move(node.mapped());
  if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
    const cache::SampleRef bytes = status.ok() ? incoming.buffer : nullptr;
    for (auto& [_, one] : datasets_)
      one->cache().OnPeerReply(request_id, *reply, bytes, now);
    return;
  }
  const auto dataset = incoming.buffer ? incoming.reserved_by.lock() : Find(DatasetOf(message));
  if (!dataset) return;  // gone meanwhile, and its budget with it
  if (const Status refused = Admit(client, message); !refused.ok()) {
    if (incoming.buffer) dataset->cache().Abandon(incoming.buffer);
    return AnswerUnknown(client, request_id, message, refused.code());
  }
  if (const auto* put = std::get_if<wire::Put>(&message)) {
    TakePut(client, request_id, *put, dataset, incoming.buffer, status);
  } else if (const auto* push = std::get_if<wire::Push>(&message)) {
    dataset->cache().OnPush(client, request_id, *push, incoming.buffer, status);
  }
}

void Node::TakePut(ClientId client, std::uint32_t request_id, const wire::Put& put,
                   const std::shared_ptr<NodeDataset>& dataset, const cache::SampleRef& bytes,
                   const Status& received) {
  const PutTerms terms = TermsOf(client, *dataset);
  const auto take = [=, this, asker = Asker{.client = client, .borrower = terms.borrower},
                     within = std::weak_ptr(dataset)](const Status& status) {
    // Gone meanwhile, and its budget with it?
    if (const auto alive = within.lock()) {
      alive->cache().OnPut(asker, request_id, put, bytes, status, clock_.Now());
    }
  };
  if (!terms.to_prove || !bytes || !received.ok()) return take(received);
  visitors_->Prove(client, bytes, dataset->digests()[put.item.id], take);
}

void Node::Tick() {
  const MonotonicTime now = clock_.Now();
  for (auto& [_, dataset] : datasets_)
    dataset->cache().Tick(now);
  if (disk_) {
    const ByteCount offered = disk_->offered();
    disk_->Tick();
    if (offered != reported_disk_) {  // it failed
      reported_disk_ = offered;
      control_->ReportSoon();
    }
  }
  if (++ticks_ % kTicksPerFollow == 0) {
    for (auto& [_, dataset] : datasets_) {
      dataset->FollowStreams(streams_);
      dataset->GiveAwayIfDue(now);
    }
    WatchPeers();
    FreeUntaken();
    streams_.Sweep(now);
    LookAtVisitors();
    if (shares_are_due_) TellShares();
  }
  if (const auto changes = streams_.changes() + stores_.changes(); changes != reported_changes_) {
    reported_changes_ = changes;
    control_->ReportSoon();
  }
}

}  // namespace optcache::node
