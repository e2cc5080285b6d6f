// Joins the parts of one replica: clients, informers, servers, the election, and the leadership
// while it has it.
//
// Start listens first, then starts the informers and the election. The webhook answers 503 until
// the machines are listed, for what it injects depends on their versions. OnStarted and OnStopped
// make and destroy the Leadership, which is all that leading adds. Its permit names the term, so a
// request that an earlier leadership left behind is refused. The election has a client of its own:
// a renewal never waits behind other requests. A stop goes in three steps: not ready and no Lease,
// then serving for shutdown_delay, then the servers drain.

#include "operator/manager/operator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "coordination/state.h"
#include "net/service_pages.h"
#include "operator/manager/node_tokens.h"
#include "operator/webhook/settings.h"

namespace optcache::manager {
namespace {

constexpr std::size_t kMaxControlConnections = 16384;  // two a node: its poll and its report
constexpr Duration kReleaseTimeout = std::chrono::seconds(3);

// Of the jitter: each replica's is its own.
std::uint64_t SeedOf(const OperatorOptions& options) {
  return std::hash<std::string>()(options.pod_name + "_" + options.pod_ip);
}

kube::LeaderElectionOptions ElectionOptions(const OperatorOptions& options) {
  return {.lease = {.ns = options.system_namespace, .name = options.name + "-operator"},
          .identity = options.pod_name + "_" + options.pod_ip,
          .lease_duration = options.lease_duration,
          .renew_deadline = options.renew_deadline,
          .retry_period = options.retry_period,
          .seed = SeedOf(options)};
}

kube::ApiClientOptions ClientOptions(const OperatorOptions& options) {
  return {.user_agent = "optcache-operator/" + options.version, .seed = SeedOf(options)};
}

std::vector<webhook::OldMachine> OldMachines(const kube::ObjectCache& nodes) {
  std::vector<webhook::OldMachine> machines;
  for (const kube::ObjectCache::Entry& node : nodes.List()) {
    if (auto machine = webhook::OldMachineOf(*node)) machines.push_back(*std::move(machine));
  }
  return machines;
}

net::HttpServerOptions ControlHttpOptions(std::shared_ptr<net::TlsContext> tls) {
  return {.label = "control",
          .max_body_bytes = coordination::kMaxInventoryBytes,
          .max_body_bytes_unproven = control::kMaxCertificateRequestBytes,
          .max_connections = kMaxControlConnections,
          .tls = std::move(tls)};
}

}  // namespace

std::string UrlOfLeader(const std::string& identity, std::uint16_t control_port) {
  const std::size_t underscore = identity.rfind('_');
  if (underscore == std::string::npos || underscore + 1 == identity.size()) return "";
  std::string ip = identity.substr(underscore + 1);
  if (ip.find(':') != std::string::npos) ip = "[" + ip + "]";  // IPv6
  return fmt::format("https://{}:{}", ip, control_port);
}

Result<std::unique_ptr<Operator>> Operator::Start(net::EventLoop& loop, const Clock& clock,
                                                  const kube::ApiAccess& access,
                                                  OperatorOptions options,
                                                  std::function<void(std::string)> on_end) {
  options.authority.name = options.name;
  options.authority.system_namespace = options.system_namespace;
  RETURN_IF_ERROR(authority::CheckSettings(options.authority));
  std::unique_ptr<Operator> self(
      new Operator(loop, clock, access, std::move(options), std::move(on_end)));
  RETURN_IF_ERROR(self->Listen());
  self->AddPages();
  self->watches_.nodes.OnSynced([raw = self.get()] { raw->StartWebhook(); });
  self->watches_.Start();
  self->elector_.Start();
  return self;
}

Operator::Operator(net::EventLoop& loop, const Clock& clock, const kube::ApiAccess& access,
                   OperatorOptions options, std::function<void(std::string)> on_end)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      on_end_(std::move(on_end)),
      client_(kube::MakeApiClient(loop, clock, access, ClientOptions(options_))),
      election_client_(kube::MakeApiClient(loop, clock, access, ClientOptions(options_))),
      webhook_tls_(std::make_shared<net::TlsContext>(net::TlsRole::kServer)),
      control_tls_(std::make_shared<net::TlsContext>(net::TlsRole::kServer,
                                                     net::ClientCertificate::kRequested)),
      watches_(loop, clock, *client_, options_.name, options_.system_namespace, SeedOf(options_)),
      datasets_(watches_.datasets, watches_.nodes),
      certificates_({.loop = loop,
                     .clock = clock,
                     .secret = watches_.secret,
                     .injectors = watches_.injectors,
                     .webhook_tls = *webhook_tls_,
                     .control_tls = *control_tls_},
                    options_.authority),
      injection_(clock, watches_.training_pods, watches_.injectors),
      last_words_(clock, watches_.training_pods),
      gate_(clock,
            {.review_token =
                 [this](const std::string& token, std::function<void(Result<std::string>)> answer) {
                   ReviewNodeToken(*client_, options_, token, std::move(answer));
                 },
             .sign =
                 [this](const std::string& request, const std::string& pod_name) {
                   return certificates_.Sign(request, pod_name);
                 }}),
      elector_(loop, clock, *election_client_, ElectionOptions(options_),
               {.on_started = [this](std::uint64_t term) { OnStarted(term); },
                .on_stopped = [this](kube::LeadershipEnd end,
                                     const std::string& why) { OnStopped(end, why); },
                .on_leader = [this](const std::string& identity) { OnLeader(identity); }}) {}

Operator::~Operator() = default;

Status Operator::Listen() {
  net::HttpServerOptions webhook_options = webhook::WebhookHttpOptions();
  webhook_options.tls = webhook_tls_;
  ASSIGN_OR_RETURN(
      webhook_server_,
      net::ListenHttp(loop_, options_.webhook_address, webhook_options,
                      [this](const net::HttpRequest& request, const net::HttpResponder& respond) {
                        if (webhook_handler_) return webhook_handler_(request, respond);
                        respond(net::HttpResponse::Text(503, "still starting\n"));
                      }));
  ASSIGN_OR_RETURN(
      control_server_,
      net::ListenHttp(loop_, options_.control_address, ControlHttpOptions(control_tls_),
                      [this](const net::HttpRequest& request, const net::HttpResponder& responder) {
                        // A frozen process that wakes up is no leader, whatever it was told last.
                        if (leads() && !elector_.IsLeader()) gate_.Follow("");
                        gate_.Handle(request, [responder](net::HttpResponse response) {
                          responder(std::move(response));
                        });
                      }));
  ASSIGN_OR_RETURN(pages_server_,
                   net::ListenHttp(loop_, options_.metrics_address, {.label = "pages"},
                                   net::Serve({.metrics = [this] { return page_.Render(); },
                                               .ready = [this] { return Ready(); }})));
  return OkStatus();
}

void Operator::StartWebhook() {
  webhook_ = std::make_unique<webhook::Webhook>(
      clock_,
      webhook::InjectionSettings{.name = options_.name,
                                 .system_namespace = options_.system_namespace,
                                 .version = options_.version,
                                 .sidecar_image = options_.sidecar_image,
                                 .image_pull_policy = options_.image_pull_policy,
                                 .image_pull_secrets = options_.image_pull_secrets,
                                 .source_variables = ProxyVariables(options_.proxy),
                                 .ordinary_sidecars = options_.ordinary_sidecars},
      datasets_);
  webhook_handler_ = webhook_->Handler();
  const auto look = [this] { webhook_->SetOldMachines(OldMachines(watches_.nodes.cache())); };
  look();
  // An old machine may join at any time, and the last one go.
  watches_.nodes.OnChange([look](const kube::ObjectChange&) { look(); });
}

void Operator::AddPages() {
  page_.Add([this](const CounterVisitor& visit) {
    client_->VisitCounters(visit);
    watches_.VisitCounters(visit);
    certificates_.VisitCounters(visit);
    injection_.VisitCounters(visit);
    gate_.VisitCounters(visit);
    elector_.VisitCounters(visit);
    for (const auto* server : {webhook_server_.get(), control_server_.get(), pages_server_.get()})
      server->VisitCounters(visit);
    if (webhook_) webhook_->VisitCounters(visit);
    if (leadership_) leadership_->VisitCounters(visit);
  });
}

Status Operator::Ready() {
  if (stopping_) return {Code::kUnavailable, "stopping"};
  if (const std::string missing = watches_.Missing(); !missing.empty())
    return {Code::kUnavailable, "not listed yet: " + missing};
  RETURN_IF_ERROR(certificates_.ready());
  if (!webhook_) return {Code::kUnavailable, "the machines are not known yet"};
  return webhook_->ready();
}

void Operator::OnStarted(std::uint64_t term) {
  if (stopping_) return;
  leadership_ = std::make_unique<Leadership>(
      Leadership::Parts{.loop = loop_,
                        .clock = clock_,
                        .client = *client_,
                        // What an earlier leadership of this process still has to send is void.
                        .permit = [this, term]() -> std::optional<MonotonicTime> {
                          if (elector_.term() != term) return std::nullopt;
                          return elector_.WritesUntil();
                        },
                        .watches = watches_,
                        .datasets = datasets_,
                        .certificates = certificates_,
                        .injection = injection_,
                        .last_words = last_words_,
                        .gate = gate_},
      options_, term);
}

// An API server that is away for a while is no reason to begin again: watches and certificates go
// on.
void Operator::OnStopped(kube::LeadershipEnd end, const std::string& why) {
  leadership_.reset();
  if (end == kube::LeadershipEnd::kFrozen && !stopping_) on_end_("leads no more: " + why);
}

// Nodes wait with a 503 while this one, which leads, still learns what there is.
void Operator::OnLeader(const std::string& identity) {
  if (leads()) return;
  const bool ourselves = identity == ElectionOptions(options_).identity;
  gate_.Follow(ourselves ? "" : UrlOfLeader(identity, options_.control_port));
}

void Operator::Stop(std::function<void()> stopped) {
  if (stopping_) return;
  stopping_ = true;
  stopped_ = std::move(stopped);
  leadership_.reset();
  elector_.Stop(kReleaseTimeout, [] {});
  shutdown_ = loop_.After(options_.shutdown_delay, [this] { StopServers(); });
}

void Operator::StopServers() {
  const std::initializer_list<net::HttpServer*> servers = {
      webhook_server_.get(), control_server_.get(), pages_server_.get()};
  open_servers_ = static_cast<int>(servers.size());
  for (net::HttpServer* server : servers) {
    server->Stop(options_.drain_timeout, [this] {
      if (--open_servers_ == 0) stopped_();
    });
  }
}

}  // namespace optcache::manager
