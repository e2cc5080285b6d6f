#pragma once

// What a node in a cluster has and one on a laptop has not: an identity, a control API by TLS,
// callers by their tokens, manifests and a state volume.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "cache-node/control/control_http.h"
#include "cache-node/control/state_dir.h"
#include "cache-node/manifests/manifest_manager.h"
#include "cache-node/trust/authorizer.h"
#include "cache-node/trust/identity.h"
#include "cache-node/trust/refusal_counters.h"
#include "cache-node/trust/token_check.h"
#include "kube/api_client.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/server.h"
#include "net/tls.h"

namespace optcache::node {

struct ClusterOptions {
  std::string ca_file;  // empty: not in a cluster
  std::string token_file;
  std::string state_dir;
  ByteCount state_size = 8_GiB;            // of the volume that holds it
  std::uint32_t manifest_samples_max = 0;  // of a manifest that pods bring; 0: any number
  std::string manifests;                   // "host:port" to listen on
  std::string machine;  // this one's name in Kubernetes; empty: tokens are not compared with it
  bool encrypt_samples = false;
  NamespaceLimits limits;
  // Where the API server is, for TokenReviews; all empty: as Kubernetes tells every pod.
  std::string api_server;
  std::string api_ca_file;
  std::string api_token_file;

  bool enabled() const { return !ca_file.empty(); }
};

// kInvalidArgument: flags that belong together and are not together.
Status CheckClusterOptions(const ClusterOptions& options, const std::string& coordinator);

// Reviews tokens by the API server, for the audience "optcache".
class ApiTokenReviewer final : public TokenReviewer {
 public:
  explicit ApiTokenReviewer(kube::Client& client) : client_(client) {}
  void Review(const std::string& token, Done done) override;

 private:
  kube::Client& client_;
};

// Used on the loop's thread only.
class ClusterSide {
 public:
  struct Self {
    std::string name;         // the pod's
    std::string host;         // under which others reach this node
    std::string coordinator;  // URL
    std::uint64_t seed = 0;
  };
  struct Hooks {
    std::function<const coordination::DesiredState&()> state;
    std::function<std::string(wire::DatasetKey)> held;  // Authorizer::Options
    std::function<void()> on_ready;                     // the first certificate is there
    std::function<void()> on_change;                    // a report would say something new
    std::function<void(const std::string& dataset)> on_used;
  };
  static Result<std::unique_ptr<ClusterSide>> Start(net::EventLoop& loop, const Clock& clock,
                                                    ClusterOptions options, Self self, Hooks hooks);

  // How to listen for wire connections, and to dial other nodes.
  net::ServerOptions WireServer(const std::string& name);
  std::shared_ptr<const net::TlsContext> client_tls() const { return client_tls_; }

  ControlHttp& control() { return *control_; }
  Authorizer& authorizer() { return *authorizer_; }
  RefusalCounters& refusal_counters() { return refusal_counters_; }
  ManifestManager& manifests() { return *manifests_; }
  StateDir& state_dir() { return state_dir_; }

  Status Ready() const { return identity_->Ready(); }
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  ClusterSide(net::EventLoop& loop, const Clock& clock, ClusterOptions options, StateDir state_dir);
  Status ConnectToApi(std::uint64_t seed);
  void MakeClients(const Self& self);

  net::EventLoop& loop_;
  const Clock& clock_;
  ClusterOptions options_;
  StateDir state_dir_;
  RefusalCounters refusal_counters_;
  // Shared with the connections that use them.
  std::shared_ptr<net::TlsContext> server_tls_;
  std::shared_ptr<net::TlsContext> client_tls_;
  std::unique_ptr<kube::ApiClient> api_;
  std::unique_ptr<ApiTokenReviewer> reviewer_;
  std::unique_ptr<TokenCheck> tokens_;
  std::unique_ptr<Authorizer> authorizer_;
  std::unique_ptr<net::HttpClient> control_client_;
  std::unique_ptr<net::HttpClient> peer_client_;
  std::unique_ptr<ControlHttp> control_;
  std::unique_ptr<Identity> identity_;
  std::unique_ptr<ManifestManager> manifests_;
};

}  // namespace optcache::node
