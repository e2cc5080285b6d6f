// Builds the parts that only a node in a cluster has, in the order of their dependencies.
//
//   token ─► TokenCheck ─► API server          (kube::ApiClient)
//   Authorizer, ManifestManager ─► TokenCheck
//   Identity ─► ControlHttp ─► coordinator     (by client_tls_)
//   Identity ─► server_tls_, client_tls_
//
// The two TLS contexts are made first, empty, and are handed to servers and clients. Identity fills
// them later: client_tls_ has the CA bundle as soon as it is there, which is enough to ask for the
// certificate.

#include "cache-node/cluster_side.h"

#include <utility>

#include <fmt/format.h>

#include "net/address.h"

namespace optcache::node {
namespace {

constexpr std::string_view kAudience = "optcache";
constexpr std::string_view kSecureScheme = "https://";
constexpr ByteCount kControlBodyMax = 64_MiB;  // a state, a base
constexpr ByteCount kStateSizeMin = 256_MiB;

// "host" of "https://host:port/...".
std::string HostOf(std::string_view url) {
  url.remove_prefix(kSecureScheme.size());
  return std::string(url.substr(0, url.find_first_of(":/")));
}

}  // namespace

Status CheckClusterOptions(const ClusterOptions& options, const std::string& coordinator) {
  if (!options.enabled()) {
    const bool plain =
        options.token_file.empty() && options.state_dir.empty() && options.manifests.empty();
    if (plain) return OkStatus();
    return {Code::kInvalidArgument,
            "--token-file, --state-dir and --manifests are for a cluster: they need --ca"};
  }
  if (options.token_file.empty() || options.state_dir.empty() || options.manifests.empty()) {
    return {Code::kInvalidArgument, "--ca needs --token-file, --state-dir and --manifests"};
  }
  if (!coordinator.starts_with(kSecureScheme)) {
    return {Code::kInvalidArgument, "--ca needs a --coordinator by https://"};
  }
  if (options.state_size < kStateSizeMin) {
    return {Code::kInvalidArgument,
            fmt::format("--state-size {}: state and manifests need {} at least",
                        FormatBytes(options.state_size), FormatBytes(kStateSizeMin))};
  }
  if (options.api_server.empty() != options.api_ca_file.empty() ||
      options.api_server.empty() != options.api_token_file.empty()) {
    return {Code::kInvalidArgument,
            "--api-server, --api-ca and --api-token-file are given together or not at all"};
  }
  return OkStatus();
}

void ApiTokenReviewer::Review(const std::string& token, Done done) {
  client_.ReviewToken(
      token, {std::string(kAudience)},
      [done = std::move(done)](const kube::ApiResult<kube::TokenReview>& review) {
        if (!review) {
          return done(Error(Code::kUnavailable, "the API server could not review the token: " +
                                                    review.error().status.message()));
        }
        if (!review->authenticated) {
          return done(Error(
              Code::kPermissionDenied,
              "the API server does not take the token for audience optcache: " + review->error));
        }
        done(ReviewedToken{.username = review->username, .extra = review->extra});
      });
}

ClusterSide::ClusterSide(net::EventLoop& loop, const Clock& clock, ClusterOptions options,
                         StateDir state_dir)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      state_dir_(std::move(state_dir)),
      refusal_counters_(clock),
      server_tls_(std::make_shared<net::TlsContext>(net::TlsRole::kServer,
                                                    net::ClientCertificate::kRequested)),
      client_tls_(std::make_shared<net::TlsContext>(net::TlsRole::kClient)) {}

Result<std::unique_ptr<ClusterSide>> ClusterSide::Start(net::EventLoop& loop, const Clock& clock,
                                                        ClusterOptions options, Self self,
                                                        Hooks hooks) {
  ASSIGN_OR_RETURN(StateDir state_dir, StateDir::Open(options.state_dir));
  std::unique_ptr<ClusterSide> side(
      new ClusterSide(loop, clock, std::move(options), std::move(state_dir)));
  RETURN_IF_ERROR(side->ConnectToApi(self.seed));
  ManifestStoreLimits limits = LimitsOf(side->options_.state_size);
  limits.samples = side->options_.manifest_samples_max;
  side->MakeClients(self);
  side->authorizer_ = std::make_unique<Authorizer>(
      *side->tokens_, side->refusal_counters_, clock, hooks.state,
      Authorizer::Options{
          .limits = side->options_.limits, .machine = side->options_.machine, .held = hooks.held});
  ASSIGN_OR_RETURN(side->manifests_, ManifestManager::Start(
                                         loop, clock,
                                         {.folder = side->state_dir_.manifests(),
                                          .listen = side->options_.manifests,
                                          .host = self.host,
                                          .node = self.name,
                                          .seed = self.seed,
                                          .limits = limits},
                                         {.tokens = *side->tokens_,
                                          .refusal_counters = side->refusal_counters_,
                                          .http = *side->peer_client_,
                                          .tls = side->server_tls_},
                                         {.on_change = hooks.on_change, .on_used = hooks.on_used}));
  side->identity_ =
      std::make_unique<Identity>(loop, clock,
                                 IdentityOptions{.name = self.name,
                                                 .token_file = side->options_.token_file,
                                                 .ca_file = side->options_.ca_file,
                                                 .folder = side->state_dir_.identity(),
                                                 .seed = self.seed},
                                 *side->control_, side->server_tls_, side->client_tls_);
  side->identity_->Start(hooks.on_ready);
  return side;
}

Status ClusterSide::ConnectToApi(std::uint64_t seed) {
  kube::ApiAccess access{.server = options_.api_server,
                         .ca_file = options_.api_ca_file,
                         .token_file = options_.api_token_file};
  if (access.server.empty()) {
    ASSIGN_OR_RETURN(access, kube::InClusterAccess());
  }
  api_ = kube::MakeApiClient(
      loop_, clock_, access,
      {.user_agent = "optcache-node", .request_timeout = std::chrono::seconds(8), .seed = seed});
  reviewer_ = std::make_unique<ApiTokenReviewer>(*api_);
  tokens_ = std::make_unique<TokenCheck>(*reviewer_, clock_);
  return OkStatus();
}

void ClusterSide::MakeClients(const Self& self) {
  control_client_ = net::MakeHttpClient(loop_, {.max_body_bytes = kControlBodyMax,
                                                .tls = client_tls_,
                                                .server_name = HostOf(self.coordinator)});
  peer_client_ = net::MakeHttpClient(loop_, {.max_body_bytes = ManifestStoreLimits{}.manifest_bytes,
                                             .tls = client_tls_,
                                             .server_name = std::string(net::kNodeServerName)});
  control_ = std::make_unique<ControlHttp>(*control_client_, self.coordinator);
}

net::ServerOptions ClusterSide::WireServer(const std::string& name) {
  return {.name = name,
          .tls = server_tls_,
          .bulk = !options_.encrypt_samples,
          .authorize = [this](const wire::Hello& hello, const net::PeerInfo& peer,
                              std::function<void(Status)> decide) {
            authorizer_->Authorize(hello, peer, std::move(decide));
          }};
}

void ClusterSide::VisitCounters(const CounterVisitor& visitor) const {
  refusal_counters_.VisitCounters(visitor);
  tokens_->VisitCounters(visitor);
  api_->VisitCounters(visitor);
  identity_->VisitCounters(visitor);
  manifests_->VisitCounters(visitor);
}

}  // namespace optcache::node
