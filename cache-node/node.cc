#include "cache-node/node.h"

#include <algorithm>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "coordination/plan_base.h"
#include "dataset/manifest.h"
#include "net/address.h"

namespace optcache::node {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(5);
constexpr std::uint64_t kTicksPerFollow = 20;  // streams are followed ten times a second
constexpr Duration kStopGrace = std::chrono::seconds(5);

ClientId IdOf(const net::Connection& connection) {
  return connection.id() + 1;
}

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

Result<plan::Sizes> SizesOf(std::string manifest_bytes, const std::string& digest) {
  ASSIGN_OR_RETURN(const dataset::Manifest manifest,
                   dataset::Manifest::Parse(std::move(manifest_bytes)));
  if (dataset::ToHex(manifest.digest()) != digest) {
    return Error(Code::kDataLoss, "the manifest's digest is not the one asked for");
  }
  std::vector<std::uint32_t> sizes;
  sizes.reserve(manifest.samples());
  for (SampleId id = 0; id < manifest.samples(); ++id) {
    const ByteCount size = manifest.Size(id);
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} has {}: samples of 4 GiB and more cannot be cached",
                               manifest.Path(id), FormatBytes(size)));
    }
    sizes.push_back(static_cast<std::uint32_t>(size));
  }
  return plan::Sizes(std::move(sizes));
}

}  // namespace

class Node::Wiring final : public net::ConnectionHandler {
 public:
  explicit Wiring(Node& node) : node_(&node) {}
  void Detach() { node_ = nullptr; }

  void OnOpen(net::Connection& connection) override {
    if (node_ != nullptr) node_->connections_[IdOf(connection)] = &connection;
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
    if (!status.ok()) {
      Log(LogLevel::kInfo, "connection closed",
          {{"peer", connection.peer_name()}, {"why", status.ToString()}});
    }
    if (node_ != nullptr) node_->Forget(connection);
  }

 private:
  Node* node_;
};

Node::Node(net::EventLoop& loop, const Clock& clock, NodeOptions options)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      wiring_(std::make_shared<Wiring>(*this)) {}

Node::~Node() {
  *alive_ = false;
  wiring_->Detach();
}

Result<std::unique_ptr<Node>> Node::Start(net::EventLoop& loop, const Clock& clock,
                                          NodeOptions options) {
  std::unique_ptr<Node> node(new Node(loop, clock, std::move(options)));
  ASSIGN_OR_RETURN(node->server_, net::Listen(loop, node->options_.listen,
                                              {.name = node->options_.name}, node->wiring_));
  if (node->options_.advertise.empty()) node->options_.advertise = node->server_->address();
  RETURN_IF_ERROR(CheckAdvertised(node->options_.advertise));
  if (node->options_.http_port != 0) {
    ASSIGN_OR_RETURN(net::Address pages, net::ParseAddress(node->options_.advertise));
    pages.port = node->options_.http_port;
    node->metrics_url_ = fmt::format("http://{}/metrics", net::FormatAddress(pages));
  }
  node->ConnectTo(node->options_.coordinator);
  node->Tick();
  return node;
}

// Others dial it: an address of "everywhere" would lead them to themselves.
Status Node::CheckAdvertised(const std::string& address) {
  ASSIGN_OR_RETURN(const net::Address parsed, net::ParseAddress(address));
  if (parsed.host != "0.0.0.0" && parsed.host != "::") return OkStatus();
  return {Code::kInvalidArgument, "other nodes cannot reach this one at " + address +
                                      ": give --advertise HOST:PORT, with this machine's address"};
}

void Node::ConnectTo(const std::string& coordinator) {
  control_ = std::make_unique<ControlClient>(
      loop_,
      ControlClient::Options{
          .url = coordinator, .node = options_.name, .seed = options_.incarnation},
      ControlClient::Hooks{
          .report = [this] { return MakeReport(); },
          .apply = [this](const coordination::DesiredState& state) { Apply(state); }});
  control_->Start();
}

Status Node::Ready() const {
  if (self_ == 0) return {Code::kUnavailable, "waiting for the coordinator"};
  if (datasets_.size() != state_.datasets.size())
    return {Code::kUnavailable, "waiting for the datasets' manifests"};
  return OkStatus();
}

void Node::Stop(std::function<void()> done) {
  tick_.Cancel();
  server_->Stop(kStopGrace, std::move(done));
}

// --- Effects ------------------------------------------------------------------------------------

void Node::Reply(ClientId to, std::uint32_t request_id, const wire::Message& message,
                 const cache::SampleRef& payload) {
  const auto it = connections_.find(to);
  if (it == connections_.end()) return;
  if (payload) {
    it->second->Send(request_id, message, payload->bytes(), payload);
  } else {
    it->second->Send(request_id, message);
  }
}

bool Node::Send(wire::MemberId to, std::uint32_t request_id, const wire::Message& message,
                const cache::SampleRef& payload) {
  const auto peer = peers_by_id_.find(to);
  if (peer == peers_by_id_.end()) return false;
  net::Connection* connection = peers_->Get(peer->second.address);
  if (connection == nullptr) return false;
  if (connection->peer_name() != peer->second.name) {
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

// --- Connections --------------------------------------------------------------------------------

std::shared_ptr<NodeDataset> Node::Find(wire::DatasetKey key) {
  for (auto& [_, dataset] : datasets_) {
    if (dataset->state().key == key) return dataset;
  }
  return nullptr;
}

// For a dataset that is not served, or not yet: nothing is here, and nobody waits for that word.
void Node::AnswerUnknown(ClientId from, std::uint32_t request_id, const wire::Message& message) {
  if (const auto* get = std::get_if<wire::Get>(&message)) {
    const auto answer =
        get->mode == wire::GetMode::kPeer ? wire::Answer::kAbsent : wire::Answer::kMissDrop;
    for (std::uint32_t i = 0; i < get->items.size(); ++i)
      Reply(from, request_id, wire::SampleReply{.index = i, .answer = answer}, nullptr);
  } else if (const auto* lookup = std::get_if<wire::Lookup>(&message)) {
    wire::LookupReply reply{.dataset = lookup->dataset};
    for (const SampleId id : lookup->ids)
      reply.items.push_back({.id = id});
    Reply(from, request_id, reply, nullptr);
  }
}

void Node::Handle(net::Connection& from, std::uint32_t request_id, wire::Message message) {
  const ClientId client = IdOf(from);
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
    if (Status status = streams_.OnAttach(client, *attach); !status.ok()) from.Close(status);
    return;
  }
  const std::shared_ptr<NodeDataset> dataset = Find(DatasetOf(message));
  if (!dataset) return AnswerUnknown(client, request_id, message);
  DatasetCache& cache = dataset->cache();
  if (const auto* get = std::get_if<wire::Get>(&message)) {
    if (get->stream != 0 && !get->items.empty()) {
      dataset->OnPassSeen(get->stream, get->items.back().pass);
      streams_.OnServed(*get);
    }
    cache.OnGet(client, from.peer_member(), request_id, *get, now);
  } else if (const auto* lease = std::get_if<wire::LeaseUpdate>(&message)) {
    cache.OnLeaseUpdate(*lease, now);
  } else if (const auto* lookup = std::get_if<wire::Lookup>(&message)) {
    cache.OnLookup(client, from.peer_member(), request_id, *lookup, now);
  } else if (const auto* found = std::get_if<wire::LookupReply>(&message)) {
    cache.OnLookupReply(request_id, *found, now);
  } else if (const auto* holding = std::get_if<wire::Holding>(&message)) {
    cache.OnHolding(from.peer_member(), *holding);
  } else if (const auto* announce = std::get_if<wire::Announce>(&message)) {
    cache.OnAnnounce(*announce, now);
  } else if (const auto* stored = std::get_if<wire::StoreReply>(&message)) {
    cache.OnStoreReply(*stored, now);
  }
}

net::PayloadSink Node::PlacePayload(net::Connection& from, std::uint32_t request_id,
                                    const wire::Message& message, ByteCount length) {
  Incoming incoming;
  if (const auto* reply = std::get_if<wire::SampleReply>(&message)) {
    for (auto& [_, one] : datasets_) {
      incoming.buffer = one->cache().ReceiveFromPeer(request_id, reply->index, length);
      if (incoming.buffer) break;
    }
  } else if (const auto dataset = Find(DatasetOf(message))) {
    const auto* put = std::get_if<wire::Put>(&message);
    const auto* push = std::get_if<wire::Push>(&message);
    if (put != nullptr || push != nullptr) {
      const SampleId id = put != nullptr ? put->item.id : push->item.id;
      incoming.buffer = dataset->cache().Receive(id, length);
      incoming.reserved_by = dataset;
    }
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
  if (const auto* put = std::get_if<wire::Put>(&message)) {
    dataset->cache().OnPut(client, request_id, *put, incoming.buffer, status, now);
  } else if (const auto* push = std::get_if<wire::Push>(&message)) {
    dataset->cache().OnPush(client, request_id, *push, incoming.buffer, status);
  }
}

void Node::Forget(net::Connection& gone) {
  const ClientId client = IdOf(gone);
  if (const auto node = incoming_.extract(client)) {
    if (const auto dataset = node.mapped().reserved_by.lock()) {
      dataset->cache().Abandon(node.mapped().buffer);
    }
  }
  for (auto& [_, dataset] : datasets_)
    dataset->cache().OnClientGone(client, clock_.Now());
  streams_.OnClosed(client);
  connections_.erase(client);
}

// --- The coordinator ----------------------------------------------------------------------------

// Once for each stream, when its ranks begin to disagree.
void Node::WarnOfConflicts(const coordination::DesiredState& next) const {
  std::set<StreamId> known;
  for (const auto& dataset : state_.datasets) {
    for (const auto& stream : dataset.streams) {
      if (!stream.conflict.empty()) known.insert(stream.id);
    }
  }
  for (const auto& dataset : next.datasets) {
    for (const auto& stream : dataset.streams) {
      if (stream.conflict.empty() || known.contains(stream.id)) continue;
      Log(LogLevel::kWarning, "ranks disagree, their order is not known: give all the same sampler",
          {{"stream", stream.name}, {"conflict", stream.conflict}});
    }
  }
}

void Node::Apply(const coordination::DesiredState& state) {
  WarnOfConflicts(state);
  state_ = state;
  if (!ApplyMembers(state)) return;
  std::set<std::string> present;
  for (const auto& dataset : state.datasets) {
    present.insert(dataset.name);
    ApplyDataset(dataset);
  }
  std::erase_if(datasets_, [&](const auto& dataset) { return !present.contains(dataset.first); });
}

// False while the state does not list this node: not yet, or not any more. What it holds stays for
// when it is listed again.
bool Node::ApplyMembers(const coordination::DesiredState& state) {
  std::map<wire::MemberId, Peer> peers;
  wire::MemberId self = 0;
  for (const auto& member : state.members) {
    if (member.name == options_.name) {
      self = member.id;
    } else {
      peers[member.id] = {.name = member.name, .address = member.address};
    }
  }
  if (self == 0) peers.clear();
  if (self != 0 && self != self_) {
    // A new life as a member: what was known under the old id is not ours any more.
    datasets_.clear();
    peers_by_id_.clear();
    self_ = self;
    peers_ = std::make_unique<net::ClientPool>(
        loop_,
        net::ClientPoolOptions{
            .dial = {.hello = {.role = wire::Role::kNode, .name = options_.name, .member = self_}},
            .seed = options_.incarnation,
            .label = "peers"},
        wiring_);
  }
  for (const auto& [member, peer] : peers_by_id_) {
    if (!peers.contains(member)) peers_->Drop(peer.address);
  }
  peers_by_id_ = std::move(peers);
  for (const auto& [_, peer] : peers_by_id_)
    peers_->Keep(peer.address);
  return self != 0;
}

void Node::ApplyDataset(const coordination::DatasetState& state) {
  auto found = datasets_.find(state.name);
  if (found != datasets_.end() && found->second->state().key != state.key) {
    datasets_.erase(found);
    found = datasets_.end();
  }
  if (found == datasets_.end()) return LoadManifest(state);
  std::vector<wire::MemberId> members;
  members.reserve(state_.members.size());
  for (const auto& member : state_.members)
    members.push_back(member.id);
  if (found->second->Apply(state, members)) FetchBase(state.name, state);
  if (const auto number = found->second->TakeInventoryRequest(); number != 0) {
    control_->SendInventory({.node = options_.name,
                             .incarnation = options_.incarnation,
                             .dataset = state.name,
                             .request = number,
                             .ids = found->second->cache().keeper().Inventory(),
                             .positions = streams_.Positions(state.key)});
  }
}

void Node::LoadManifest(const coordination::DatasetState& state) {
  std::string& awaited = loading_[state.name];
  if (awaited == state.manifest_digest) return;
  awaited = state.manifest_digest;
  control_->FetchManifest(state.manifest_digest, [this, name = state.name,
                                                  digest = state.manifest_digest](
                                                     Result<std::string> bytes) {
    loading_.erase(name);
    const auto wanted = std::find_if(state_.datasets.begin(), state_.datasets.end(),
                                     [&](const auto& dataset) { return dataset.name == name; });
    if (wanted == state_.datasets.end() || wanted->manifest_digest != digest) return;
    auto sizes = bytes ? SizesOf(*std::move(bytes), digest) : Error(bytes.error());
    if (!sizes) {
      Log(LogLevel::kError, "no manifest", {{"dataset", name}, {"why", sizes.error().ToString()}});
      return;
    }
    Log(LogLevel::kInfo, "dataset served", {{"dataset", name}, {"samples", sizes->count()}});
    datasets_[name] =
        std::make_shared<NodeDataset>(*wanted, self_, *std::move(sizes), *this,
                                      [this, name, alive = alive_](DerivedWindow window) {
                                        loop_.Post([=, this, window = std::move(window)]() mutable {
                                          if (*alive) TakeWindow(name, std::move(window));
                                        });
                                      });
    ApplyDataset(*wanted);
  });
}

void Node::TakeWindow(const std::string& dataset, DerivedWindow window) {
  const auto found = datasets_.find(dataset);
  if (found != datasets_.end()) found->second->OnDerived(std::move(window), clock_.Now());
}

void Node::FetchBase(const std::string& dataset, const coordination::DatasetState& state) {
  if (state.base_digest.empty()) return datasets_[dataset]->StartPlan({});
  control_->FetchBase(
      state.base_digest, [this, dataset, planned = state.planned](Result<std::string> bytes) {
        const auto found = datasets_.find(dataset);
        if (found == datasets_.end() || found->second->state().planned != planned) return;
        auto base = bytes ? coordination::DecodePlanBase(*bytes) : Error(bytes.error());
        if (!base) {
          Log(LogLevel::kError, "no base for the plan",
              {{"dataset", dataset}, {"why", base.error().ToString()}});
          return;
        }
        std::vector<std::pair<wire::MemberId, std::vector<SampleId>>> holdings;
        for (auto& member : base->members) {
          holdings.emplace_back(member.member, std::move(member.ids));
        }
        found->second->StartPlan(std::move(holdings));
      });
}

coordination::Report Node::MakeReport() const {
  coordination::Report report{.node = options_.name,
                              .incarnation = options_.incarnation,
                              .address = options_.advertise,
                              .metrics = metrics_url_,
                              .capacity = options_.memory,
                              .member = self_,
                              .applied = state_.version,
                              .streams = streams_.Report()};
  for (const auto& [_, dataset] : datasets_)
    report.datasets.push_back(dataset->Report());
  return report;
}

void Node::Tick() {
  const MonotonicTime now = clock_.Now();
  for (auto& [_, dataset] : datasets_)
    dataset->cache().Tick(now);
  if (++ticks_ % kTicksPerFollow == 0) {
    for (auto& [_, dataset] : datasets_)
      dataset->FollowStreams(streams_);
    streams_.Sweep(now);
  }
  if (streams_.changes() != reported_changes_) {
    reported_changes_ = streams_.changes();
    control_->ReportSoon();
  }
  tick_ = loop_.After(kTick, [this] { Tick(); });
}

}  // namespace optcache::node
