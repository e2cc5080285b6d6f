// Starts and stops the node, and joins its parts.
//
//   sidecars, nodes ─► Wiring ─► MessageRouter ─► DatasetCache, StreamTable, StoreTable, ...
//   coordinator ─► ControlClient ─► Apply (node_control.cc) ─► NodeDataset
//   DatasetCache, PushQueue ─► PeerLinks ─► connections
//
// All of it runs on the event loop's thread. Wiring outlives the node, because connections may end
// after it; once it is detached it does nothing.

#include "cache-node/node.h"

#include <algorithm>
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

}  // namespace

class Node::Wiring final : public net::ConnectionHandler {
 public:
  explicit Wiring(Node& node) : node_(&node) {}
  void Detach() { node_ = nullptr; }

  void OnOpen(net::Connection& connection) override {
    if (node_ == nullptr) return;
    node_->links_->OnOpen(connection);
    if (!node_->cluster_) return;
    const Status status = node_->cluster_->authorizer().OnOpen(IdOf(connection), connection);
    if (!status.ok()) connection.Close(status);
  }
  void OnMessage(net::Connection& connection, std::uint32_t request_id,
                 wire::Message message) override {
    if (node_ != nullptr) node_->router_->OnMessage(connection, request_id, std::move(message));
  }
  net::PayloadSink OnPayloadStart(net::Connection& connection, std::uint32_t request_id,
                                  const wire::Message& message, ByteCount length) override {
    if (node_ == nullptr) return {};
    return node_->router_->OnPayloadStart(connection, request_id, message, length);
  }
  void OnPayload(net::Connection& connection, std::uint32_t request_id, wire::Message message,
                 Status status) override {
    if (node_ != nullptr)
      node_->router_->OnPayload(connection, request_id, std::move(message), status);
  }
  void OnClosed(net::Connection& connection, const Status& status) override {
    const auto not_logged = status.ok() ? std::nullopt : log_.Pass(SystemClock().Now());
    if (not_logged) {
      Log(LogLevel::kInfo, "connection closed",
          {{"peer", connection.peer_name()},
           {"why", status.ToString()},
           {"not_logged", *not_logged}});
    }
    if (node_ != nullptr) node_->OnClosed(connection);
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
  node->links_ = std::make_unique<PeerLinks>(
      loop, clock,
      PeerLinks::Options{.name = node->options_.name,
                         .seed = node->options_.incarnation,
                         .tls = node->cluster_ ? node->cluster_->client_tls() : nullptr},
      node->wiring_);
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

void Node::MakeHost() {
  host_ = std::make_unique<DatasetHost>(
      loop_, clock_,
      DatasetHost::Options{
          .name = options_.name, .incarnation = options_.incarnation, .memory = options_.memory},
      DatasetHost::Parts{.state = state_,
                         .effects = *links_,
                         .control = *control_,
                         .plan_parts = *parts_,
                         .worker = worker_,
                         .streams = streams_,
                         .disk = disk_.get(),
                         .manifests = cluster_ ? &cluster_->manifests() : nullptr,
                         .visitors = visitors_.get()});
}

void Node::MakeRouter() {
  router_ = std::make_unique<MessageRouter>(
      clock_,
      MessageRouter::Parts{.streams = streams_,
                           .stores = stores_,
                           .savings = savings_,
                           .rates = rates_,
                           .live_memory = live_memory_,
                           .datasets = host_->datasets(),
                           .effects = *links_,
                           .authorizer = cluster_ ? &cluster_->authorizer() : nullptr,
                           .visitors = visitors_.get()},
      MessageRouter::Hooks{
          .state = [this]() -> const coordination::DesiredState& { return state_; },
          .used = [this](const std::string& dataset) { host_->OnUsed(dataset); }});
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
  if (host_->ending()) return {Code::kUnavailable, "draining"};
  if (cluster_) RETURN_IF_ERROR(cluster_->Ready());
  if (self_ == 0) return {Code::kUnavailable, "waiting for the coordinator"};
  if (!host_->IsComplete()) return {Code::kUnavailable, "waiting for the datasets' manifests"};
  return OkStatus();
}

void Node::Stop(std::function<void()> done) {
  const bool drains = options_.drain > Duration::zero() && links_->has_peers();
  const Deadline whole = Deadline::After(clock_, options_.drain);
  if (drains && !host_->ending()) {
    host_->OnEnding({.deadline = whole.at(), .on_disk = options_.disk_at_end});
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
  const bool over = !host_->ending() || deadline.Expired(now);
  if (!over) host_->GiveAway(!patience.Expired(now));
  if (over || host_->HasLeft()) {
    if (host_->ending()) host_->LogDrain();
    return done();
  }
  drain_ = loop_.After(kDrainLook,
                       [this, deadline, patience, done] { Drain(deadline, patience, done); });
}

// --- Connections --------------------------------------------------------------------------------

void Node::OnClosed(net::Connection& connection) {
  const auto lost = links_->OnClosed(connection);
  router_->OnClosed(IdOf(connection));
  if (lost && lost->gone) {
    host_->OnPeerGone(lost->member);
  } else if (lost && lost->dialed) {
    host_->OnLinkLost(lost->member);
  }
}

// Answers that are not taken keep samples in memory that the cache has dropped.
void Node::FreeUntaken() {
  const ByteCount live = cache::SampleBytes::LiveBytes();
  if (live_memory_.IsHeldUp(live, host_->in_memory(), clock_.Now())) links_->CloseFullest();
}

void Node::Tick() {
  const MonotonicTime now = clock_.Now();
  host_->Tick(now);
  if (disk_) {
    const ByteCount offered = disk_->offered();
    disk_->Tick();
    if (offered != reported_disk_) {  // it failed
      reported_disk_ = offered;
      control_->ReportSoon();
    }
  }
  if (++ticks_ % kTicksPerFollow == 0) {
    host_->FollowStreams(now);
    for (const wire::MemberId silent : links_->Watch(host_->Awaited()))
      host_->OnPeerGone(silent);
    FreeUntaken();
    streams_.Sweep(now);
    router_->LookAtClients();
  }
  if (const auto changes = streams_.changes() + stores_.changes(); changes != reported_changes_) {
    reported_changes_ = changes;
    control_->ReportSoon();
  }
}

void Node::VisitCounters(const CounterVisitor& visit) const {
  host_->VisitCounters(visit);
  visit(MetricKind::kGauge, "optcache_state_version", {},
        static_cast<double>(state_.version.counter));
  visit(MetricKind::kGauge, "optcache_members", {}, static_cast<double>(state_.members.size()));
  visit(MetricKind::kGauge, "optcache_coordinator_connected", {},
        control_->connected() ? 1.0 : 0.0);
  visit(MetricKind::kGauge, "optcache_live_sample_bytes", {},
        static_cast<double>(cache::SampleBytes::LiveBytes()));
  visit(MetricKind::kCounter, "optcache_payloads_without_room_total", {},
        static_cast<double>(live_memory_.refused()));
  if (disk_) disk_->VisitCounters(visit);
  if (cluster_) cluster_->VisitCounters(visit);
  server_->VisitCounters(visit);
  links_->VisitCounters(visit);
}

}  // namespace optcache::node
