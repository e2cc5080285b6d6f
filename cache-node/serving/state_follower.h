#pragma once

// The node's side of the control API: it follows the desired states, and tells the coordinator what
// is here. At the node's end it waits until what the node keeps has reached other nodes.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/status.h"
#include "cache-node/control/control_client.h"
#include "cache-node/control/control_http.h"
#include "cache-node/control/rate_table.h"
#include "cache-node/control/savings_table.h"
#include "cache-node/control/state_dir.h"
#include "cache-node/control/store_table.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/manifests/manifest_manager.h"
#include "cache-node/retention/node_disk.h"
#include "cache-node/retention/retention_manager.h"
#include "cache-node/serving/dataset_host.h"
#include "cache-node/serving/message_router.h"
#include "cache-node/serving/peer_links.h"
#include "cache-node/trust/authorizer.h"
#include "coordination/state.h"
#include "net/event_loop.h"
#include "net/worker_thread.h"

namespace optcache::node {

// Used on the loop's thread only.
class StateFollower {
 public:
  struct Options {
    std::string name;  // the node's
    std::uint64_t incarnation = 0;
    std::string advertise;    // how other nodes reach it
    std::string metrics_url;  // empty: it has no pages
    ByteCount memory = 0;     // payload bytes offered
    RetentionManager::OnDisk disk_at_end = RetentionManager::OnDisk::kStays;
  };
  // What it reports of, and what hears of states. It outlives this.
  struct Parts {
    ControlHttp& http;
    const StreamTable& streams;
    const StoreTable& stores;
    SavingsTable& savings;
    RateTable& rates;
    PeerLinks& links;
    net::WorkerThread& worker;
    const NodeDisk* disk = nullptr;  // null: memory alone
    // All null on a laptop.
    Authorizer* authorizer = nullptr;
    ManifestManager* manifests = nullptr;
    const StateDir* dir = nullptr;
  };
  StateFollower(net::EventLoop& loop, const Clock& clock, Options options, Parts parts);

  // The one in force; of no version: none has come yet.
  const coordination::DesiredState& state() const { return state_; }
  ControlClient& control() { return control_; }

  // From now on these hear of states and shares, too; first of the state of the run before, if
  // there is one: the coordinator may be away when this node comes back. To be called once, before
  // Start, and they outlive what comes after.
  void Join(DatasetHost& datasets, MessageRouter& router);
  // Begins to ask for states and to report.
  void Start() { control_.Start(); }

  // kUnavailable: what it waits for until this node can serve.
  Status Ready() const;
  // Every few milliseconds: reports soon what the coordinator should hear at once.
  void Tick();

  // The node ends: moves what it keeps to other nodes as far as `limit` goes, then calls `done`.
  // Others are served meanwhile.
  void Drain(Duration limit, std::function<void()> done);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void Apply(const coordination::DesiredState& state);
  void WarnOfConflicts(const coordination::DesiredState& next) const;
  bool ApplyMembers();
  void KeepState();
  coordination::Report MakeReport();
  ByteCount disk_offered() const { return parts_.disk == nullptr ? 0 : parts_.disk->offered(); }
  void WaitForDrain(Deadline deadline, Deadline patience, std::function<void()> done);

  net::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  Parts parts_;
  DatasetHost* datasets_ = nullptr;  // from Join on
  MessageRouter* router_ = nullptr;
  std::optional<coordination::DesiredState> saved_;  // of the run before, until Join
  coordination::DesiredState state_;
  wire::MemberId self_ = 0;
  ControlClient control_;
  std::uint64_t reported_changes_ = 0;
  ByteCount reported_disk_ = 0;
  net::Timer drain_;
};

}  // namespace optcache::node
