// Makes the parts, joins them, and stops them.
//
//   sidecars, nodes ─► Wiring ─┬─► MessageRouter ─► DatasetCache, StreamTable, StoreTable, ...
//                              └─► PeerLinks: which connections are open
//   coordinator ─► StateFollower ─► PeerLinks, DatasetHost ─► NodeDataset
//   DatasetCache, PushQueue ─► PeerLinks: Reply, Send ─► connections
//
// All of it runs on the event loop's thread. A part gets the parts that it needs when it is made,
// and outlives none of them. Wiring outlives the node, because connections may end after it; once
// it is detached it does nothing.

#include "cache-node/node.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "net/address.h"

namespace optcache::node {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(5);
constexpr std::uint64_t kTicksPerFollow = 20;  // streams are followed ten times a second
constexpr Duration kStopGrace = std::chrono::seconds(5);
constexpr ByteCount kPlainBodyMax = 4_GiB;  // a manifest

// Others dial it: an address of "everywhere" would lead them to themselves.
Status CheckAdvertised(const std::string& address) {
  ASSIGN_OR_RETURN(const net::Address parsed, net::ParseAddress(address));
  const bool is_everywhere =
      parsed.host == net::kEverywhere || parsed.host == "0.0.0.0" || parsed.host == "::";
  if (parsed.is_unix() || (!is_everywhere && parsed.port != 0)) return OkStatus();
  return {Code::kInvalidArgument, "other nodes cannot reach this one at " + address +
                                      ": give --advertise HOST:PORT, with this machine's address"};
}

// Of its pages; empty: it has none.
Result<std::string> MetricsUrl(const NodeOptions& options) {
  if (options.http_port == 0) return std::string();
  ASSIGN_OR_RETURN(const net::Address reached, net::ParseAddress(options.advertise));
  const net::Address pages{.host = reached.is_unix() ? options.http_host : reached.host,
                           .port = options.http_port};
  return fmt::format("http://{}/metrics", net::FormatAddress(pages));
}

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
  ASSIGN_OR_RETURN(const std::string metrics_url, MetricsUrl(node->options_));
  node->MakeFollower(metrics_url);
  node->MakeHost();
  node->MakeRouter();
  node->follower_->Join(*node->host_, *node->router_);
  if (!node->cluster_) node->follower_->Start();  // else with the first certificate
  node->Tick();
  node->tick_ = net::PeriodicTimer(loop, kTick, [self = node.get()] { self->Tick(); });
  return node;
}

Status Node::JoinCluster() {
  ASSIGN_OR_RETURN(const net::Address advertised, net::ParseAddress(options_.advertise));
  ClusterSide::Hooks hooks{
      .state = [this]() -> const coordination::DesiredState& { return follower_->state(); },
      .held =
          [this](wire::DatasetKey key) {
            const auto dataset = host_->Find(key);
            return dataset ? dataset->name() : std::string();
          },
      .on_ready = [this] { loop_.Post(guard_.Wrap([this] { follower_->Start(); })); },
      .on_change =
          [this] {
            if (follower_) follower_->control().ReportSoon();
          },
      .on_used = [this](const std::string& dataset) { host_->OnUsed(dataset); }};
  ASSIGN_OR_RETURN(cluster_, ClusterSide::Start(loop_, clock_, options_.cluster,
                                                {.name = options_.name,
                                                 .host = advertised.host,
                                                 .coordinator = options_.coordinator,
                                                 .seed = options_.incarnation},
                                                std::move(hooks)));
  visitors_ = std::make_unique<NodeVisitors>(loop_, clock_, cluster_->authorizer(),
                                             cluster_->refusal_counters(), streams_);
  return OkStatus();
}

void Node::MakeFollower(const std::string& metrics_url) {
  if (!cluster_) {
    plain_http_ = net::MakeHttpClient(
        loop_,
        {.max_body_bytes = kPlainBodyMax, .unix_socket = net::UnixPathOf(options_.coordinator)});
    plain_control_ = std::make_unique<ControlHttp>(*plain_http_, options_.coordinator);
  }
  const StateDir* const dir = cluster_ ? &cluster_->state_dir() : nullptr;
  follower_ = std::make_unique<StateFollower>(
      loop_, clock_,
      StateFollower::Options{.name = options_.name,
                             .incarnation = options_.incarnation,
                             .advertise = options_.advertise,
                             .metrics_url = metrics_url,
                             .memory = options_.memory,
                             .disk_at_end = options_.disk_at_end},
      StateFollower::Parts{.http = cluster_ ? cluster_->control() : *plain_control_,
                           .streams = streams_,
                           .stores = stores_,
                           .savings = savings_,
                           .rates = rates_,
                           .links = *links_,
                           .worker = worker_,
                           .disk = disk_.get(),
                           .authorizer = cluster_ ? &cluster_->authorizer() : nullptr,
                           .manifests = cluster_ ? &cluster_->manifests() : nullptr,
                           .dir = dir});
  plan_parts_ = std::make_unique<PlanParts>(follower_->control(), dir, follower_->state());
}

void Node::MakeHost() {
  host_ = std::make_unique<DatasetHost>(
      loop_, clock_,
      DatasetHost::Options{
          .name = options_.name, .incarnation = options_.incarnation, .memory = options_.memory},
      DatasetHost::Parts{.state = follower_->state(),
                         .effects = *links_,
                         .control = follower_->control(),
                         .plan_parts = *plan_parts_,
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
          .state = [this]() -> const coordination::DesiredState& { return follower_->state(); },
          .used = [this](const std::string& dataset) { host_->OnUsed(dataset); }});
}

Status Node::Ready() const {
  if (cluster_ && !host_->ending()) RETURN_IF_ERROR(cluster_->Ready());
  return follower_->Ready();
}

void Node::Stop(std::function<void()> done) {
  follower_->Drain(options_.drain, [this, done = std::move(done)]() mutable {
    tick_.Cancel();
    server_->Stop(kStopGrace, std::move(done));
  });
}

void Node::OnClosed(net::Connection& connection) {
  const auto lost = links_->OnClosed(connection);
  router_->OnClosed(IdOf(connection));
  if (lost && lost->gone) {
    host_->OnPeerGone(lost->member);
  } else if (lost && lost->dialed) {
    host_->OnLinkLost(lost->member);
  }
}

void Node::Tick() {
  const MonotonicTime now = clock_.Now();
  host_->Tick(now);
  if (disk_) disk_->Tick();
  if (++ticks_ % kTicksPerFollow == 0) {
    host_->FollowStreams(now);
    for (const wire::MemberId silent : links_->Watch(host_->Awaited()))
      host_->OnPeerGone(silent);
    // Answers that are not taken keep samples in memory that the caches have dropped.
    const ByteCount live = cache::SampleBytes::LiveBytes();
    if (live_memory_.IsHeldUp(live, host_->in_memory(), now)) links_->CloseFullest();
    streams_.Sweep(now);
    router_->LookAtClients();
  }
  follower_->Tick();
}

void Node::VisitCounters(const CounterVisitor& visit) const {
  host_->VisitCounters(visit);
  follower_->VisitCounters(visit);
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
