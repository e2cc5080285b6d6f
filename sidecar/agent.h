#pragma once

// The sidecar as a whole: the core, bound to sockets, stores and threads.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/tls_files.h"
#include "sidecar/client_router.h"
#include "sidecar/clients/client_service.h"
#include "sidecar/clients/feeder.h"
#include "sidecar/computed/computed_cache.h"
#include "sidecar/fetch/node_link.h"
#include "sidecar/fetch/store_reader.h"
#include "sidecar/manifests/dataset_registry.h"
#include "sidecar/ports/alarms.h"
#include "sidecar/prefetch/order_replayer.h"
#include "sidecar/s3/key_order.h"
#include "sidecar/s3/object_reads.h"
#include "sidecar/s3/s3_endpoint.h"

namespace optcache::sidecar {

struct AgentOptions {
  std::string name;
  std::string socket;
  // Who may connect there, beside root; unset: everybody who reaches it.
  std::optional<std::vector<std::uint32_t>> users;
  std::string node;  // "host:port"
  ByteCount arena_bytes = 0;
  ByteCount computed_bytes = 0;  // memory for computed samples; 0: none are kept
  std::vector<DatasetSource> datasets;
  std::vector<std::string> manifests;  // where nodes serve manifests, the nearest first
  std::string manifest_dir;            // keeps those for the next start; empty: nowhere
  std::string token_file;              // tells nodes who this is; empty: nothing does
  std::string node_ca;                 // who signs nodes' certificates; empty: no TLS
  bool encrypt_samples = false;        // no plaintext after the handshake
  std::string ca_file;  // certificates to trust instead of the system's, for stores by https
  FeederOptions feeder;
  S3EndpointOptions s3;
};

// How it opens its stores.
storage::OpenOptions StoreOptionsOf(const AgentOptions& options);

// Used on the loop's thread only.
class Agent {
 public:
  // Listens when this returns. An error is a sentence for the user who started the program.
  static Result<std::unique_ptr<Agent>> Start(net::EventLoop& loop, const Clock& clock,
                                              AgentOptions options);
  // Gives up all requests, cancels the reads of the store, and turns the loop for what they post.
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Ends the clients' connections, tells the node that all ranks have ended, then calls `done`.
  void Stop(std::function<void()> done);

  // Connections of training processes.
  std::size_t clients() const { return clients_.clients(); }
  // Where it serves by S3; 0: it does not.
  std::uint16_t s3_port() const { return s3_ == nullptr ? 0 : s3_->port(); }
  void VisitCounters(const CounterVisitor& visitor) const;
  // What was delivered so far.
  std::vector<DatasetSaved> saved() const { return feeder_.batches().SavedOfAll(); }
  // Null if it is not measured.
  const HeadspaceMeter* headspace() const { return feeder_.headspace(); }

 private:
  Agent(net::EventLoop& loop, const Clock& clock, AgentOptions options, handoff::Arena arena,
        std::unique_ptr<DatasetRegistry> datasets);
  Status KeepComputed();
  void ListSources() const;
  Status ServeByS3();
  void Take(const ServedDataset& dataset);
  void WarnOfLargeSamples(const ServedDataset& dataset) const;
  void Serve(const ServedDataset& dataset);
  void FetchManifests();
  void RunAlarms();
  void ArmAlarms();

  net::EventLoop& loop_;
  AgentOptions options_;
  std::shared_ptr<net::TlsContext> tls_;  // towards nodes; null: plaintext. Shared with connections
  std::unique_ptr<net::TlsFiles> tls_files_;
  std::unique_ptr<net::HttpClient> http_;  // outlives the registry
  std::unique_ptr<DatasetRegistry> datasets_;
  SharedArena arena_;
  net::Timer alarm_timer_;
  net::Timer stop_timer_;
  Alarms alarms_;
  NodeLink node_;
  StoreReader store_;
  OrderReplayer orders_;
  ClientService clients_;
  ObjectReads objects_;
  ClientRouter router_;
  Feeder feeder_;
  KeyOrder key_order_;
  std::unique_ptr<S3Endpoint> s3_;  // if there is one
  std::optional<SharedArena> computed_memory_;
  std::optional<ComputedCache> computed_;  // if there is memory for it
};

}  // namespace optcache::sidecar
