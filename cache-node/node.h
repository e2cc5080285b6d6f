#pragma once

// The node: makes its parts, joins them on one event loop, and stops them in order. What each part
// does is in its own header.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "cache-node/cluster_side.h"
#include "cache-node/control/control_http.h"
#include "cache-node/control/rate_table.h"
#include "cache-node/control/savings_table.h"
#include "cache-node/control/store_table.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/planning/plan_parts.h"
#include "cache-node/retention/node_disk.h"
#include "cache-node/serving/dataset_host.h"
#include "cache-node/serving/live_memory.h"
#include "cache-node/serving/message_router.h"
#include "cache-node/serving/peer_links.h"
#include "cache-node/serving/state_follower.h"
#include "cache-node/trust/node_visitors.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/periodic_timer.h"
#include "net/server.h"
#include "net/worker_thread.h"

namespace optcache::node {

struct NodeOptions {
  std::string name;
  std::string listen;           // "host:port", port 0: any; or "unix:/path"
  std::string advertise;        // how others reach it (net::WithPort); empty: as it listens
  std::uint16_t http_port = 0;  // of its pages, on the host that it advertises; 0: none
  std::string http_host;        // of them, where it advertises a Unix socket
  std::string coordinator;      // "https://host:port", "http://host:port" or "unix:/path"
  ByteCount memory = 0;         // payload bytes offered
  std::string disk;             // folder for samples; empty: memory alone
  ByteCount disk_capacity = 0;  // of files there
  RetentionManager::OnDisk disk_at_end =
      RetentionManager::OnDisk::kStays;  // for its next run, or not
  std::uint64_t incarnation = 0;         // rises with each start of the process
  Duration drain = Duration::zero();     // at its end, time to move what it keeps to other nodes
  ClusterOptions cluster;
};

// Used on the loop's thread only.
class Node final {
 public:
  // kConflict: the port is in use; kInvalidArgument: not an address.
  static Result<std::unique_ptr<Node>> Start(net::EventLoop& loop, const Clock& clock,
                                             NodeOptions options);
  ~Node();

  std::string address() const { return server_->address(); }
  // It has a desired state and serves all its datasets; else kUnavailable, what it waits for.
  Status Ready() const;
  // Moves what it keeps to other nodes as far as the time for that goes, takes no new work,
  // finishes what is queued, then calls `done`.
  void Stop(std::function<void()> done);
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Wiring;  // the connections' handler

  Node(net::EventLoop& loop, const Clock& clock, NodeOptions options);
  Status JoinCluster();
  void MakeFollower(const std::string& metrics_url);
  void MakeHost();
  void MakeRouter();
  void OnClosed(net::Connection& connection);
  void Tick();

  net::EventLoop& loop_;
  const Clock& clock_;
  NodeOptions options_;
  std::shared_ptr<Wiring> wiring_;
  std::unique_ptr<net::Server> server_;
  // On a laptop; in a cluster it has its own.
  std::unique_ptr<net::HttpClient> plain_http_;
  std::unique_ptr<ControlHttp> plain_control_;
  std::unique_ptr<ClusterSide> cluster_;  // null on a laptop
  StreamTable streams_;
  StoreTable stores_;
  SavingsTable savings_;
  RateTable rates_;
  std::unique_ptr<NodeDisk> disk_;          // null: memory alone
  std::unique_ptr<NodeVisitors> visitors_;  // null on a laptop

  LiveMemory live_memory_;
  std::unique_ptr<PeerLinks> links_;
  std::unique_ptr<StateFollower> follower_;
  std::unique_ptr<PlanParts> plan_parts_;
  std::unique_ptr<DatasetHost> host_;
  std::unique_ptr<MessageRouter> router_;
  std::uint64_t ticks_ = 0;
  net::PeriodicTimer tick_;
  net::WorkerThread worker_;  // its thread ends before the above
  CallbackGuard guard_;       // last
};

}  // namespace optcache::node
