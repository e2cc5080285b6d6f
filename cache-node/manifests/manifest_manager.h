#pragma once

// All about manifests on a node of a cluster: which it holds, gives, takes and fetches.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "base/shared_bytes.h"
#include "cache-node/manifests/manifest_fetcher.h"
#include "cache-node/manifests/manifest_server.h"
#include "cache-node/manifests/manifest_store.h"
#include "cache-node/trust/refusal_counters.h"
#include "cache-node/trust/token_check.h"
#include "coordination/state.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/periodic_timer.h"
#include "net/tls.h"
#include "net/worker_thread.h"

namespace optcache::node {

struct ManifestManagerOptions {
  std::string folder;
  std::string listen;  // "host:port"
  std::string host;    // under which others reach it
  std::string node;    // this one's name, not to ask itself
  std::uint64_t seed = 0;
  ManifestStoreLimits limits;
};

// Used on the loop's thread only.
class ManifestManager {
 public:
  struct Parts {
    TokenCheck& tokens;
    RefusalCounters& refusal_counters;
    net::HttpClient& http;  // to other nodes
    std::shared_ptr<const net::TlsContext> tls;
  };
  struct Hooks {
    // Something that a report says of manifests has changed.
    std::function<void()> on_change;
    // A pod of this machine reads that dataset.
    std::function<void(const std::string& dataset)> on_used;
  };
  // `parts` outlive this. Errors as ListenHttp.
  static Result<std::unique_ptr<ManifestManager>> Start(net::EventLoop& loop, const Clock& clock,
                                                        ManifestManagerOptions options, Parts parts,
                                                        Hooks hooks);

  // A desired state is in force: fetches what this node, `self`, shall hold.
  void OnState(const coordination::DesiredState& state, coordination::MemberId self);

  // The bytes of a manifest that the state names, mapped, as soon as this node has them. Calls
  // `done` once, unless the state ceases to name it.
  using Done = std::function<void(Result<SharedBytes>)>;
  void Get(const std::string& digest, Done done);

  // For reports.
  const std::string& url() const { return url_; }
  std::vector<std::string> Digests() const { return store_.Digests(); }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  ManifestManager(net::EventLoop& loop, const Clock& clock, const ManifestManagerOptions& options,
                  ManifestStore store, Parts parts, Hooks hooks);
  void EndWaiting();
  std::vector<std::string> HoldersOf(const std::string& digest) const;
  void OnStored(const std::string& digest);
  void Read(const std::string& digest, Done done);

  std::string node_;
  Hooks hooks_;
  std::string url_;
  bool has_state_ = false;
  coordination::DesiredState state_;
  std::set<std::string> named_;
  std::map<std::string, std::vector<Done>> waiting_;
  ManifestStore store_;
  ManifestFetcher fetcher_;
  ManifestServer server_;
  std::unique_ptr<net::HttpServer> http_;
  net::PeriodicTimer sweep_;
  // Last: their threads end first. Pieces do not wait until a manifest is checked.
  net::WorkerThread worker_;
  net::WorkerThread pieces_;
};

}  // namespace optcache::node
