#pragma once

// The datasets that this node serves: which ones, their manifests, and what each state changes on
// them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/callback_guard.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "cache-node/control/control_client.h"
#include "cache-node/control/store_table.h"
#include "cache-node/control/stream_table.h"
#include "cache-node/manifests/listing.h"
#include "cache-node/manifests/manifest_manager.h"
#include "cache-node/planning/deriver_ends.h"
#include "cache-node/planning/plan_parts.h"
#include "cache-node/retention/effects.h"
#include "cache-node/retention/node_disk.h"
#include "cache-node/serving/node_dataset.h"
#include "cache-node/trust/node_visitors.h"
#include "coordination/state.h"
#include "net/event_loop.h"
#include "net/worker_thread.h"

namespace optcache::node {

// Used on the loop's thread only.
class DatasetHost {
 public:
  struct Options {
    std::string name;  // the node's
    std::uint64_t incarnation = 0;
    ByteCount memory = 0;  // payload bytes offered
  };
  // What it works with, and what outlives it.
  struct Parts {
    const coordination::DesiredState& state;  // the one in force
    Effects& effects;
    ControlClient& control;
    PlanParts& plan_parts;
    net::WorkerThread& worker;
    const StreamTable& streams;
    NodeDisk* disk = nullptr;  // null: memory alone
    // Both null on a laptop, where everything is everywhere.
    ManifestManager* manifests = nullptr;
    const NodeVisitors* visitors = nullptr;
  };
  DatasetHost(net::EventLoop& loop, const Clock& clock, Options options, Parts parts)
      : loop_(loop), clock_(clock), options_(std::move(options)), parts_(parts) {}

  const Datasets& datasets() const { return datasets_; }
  std::shared_ptr<NodeDataset> Find(wire::DatasetKey key) const;
  // All that are to be here by the state in force are, but those whose manifest is lost.
  bool IsComplete() const;

  // This node is a member under another id: what was known under the old one is not ours any more.
  void BeginAs(wire::MemberId self);
  // The state in force is another, and lists this node.
  void OnState();
  // In a cluster: pods of this machine read this Dataset, wherever it is placed.
  void OnUsed(const std::string& dataset);

  // Every few milliseconds.
  void Tick(MonotonicTime now);
  // About ten times a second.
  void FollowStreams(MonotonicTime now);
  // Other nodes of whom an answer, or the end of a lease, is awaited.
  std::set<wire::MemberId> Awaited() const;
  // No connection with that node is left, or it is silent.
  void OnPeerGone(wire::MemberId member);
  // The connection on which it was asked has ended.
  void OnLinkLost(wire::MemberId member);
  // Payload bytes that the caches have in memory.
  ByteCount in_memory() const;

  // The node ends.
  void OnEnding(const NodeDataset::Ending& ending);
  bool ending() const { return ending_.has_value(); }
  // Gives to other nodes what no plan sends there; with `awaits_plans` not yet where one will say
  // where it goes.
  void GiveAway(bool awaits_plans);
  // All has reached other nodes, or need not.
  bool HasLeft() const;
  void LogDrain() const;

  // Adds each dataset to a report.
  void Report(coordination::Report& report, const StoreTable& stores) const;
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void Apply(const coordination::DatasetState& state);
  void SendInventory(NodeDataset& dataset, coordination::RequestNumber number);
  bool IsOverbooked() const;
  bool Serves(const coordination::DatasetState& state) const;
  std::vector<wire::MemberId> HomesOf(const coordination::DatasetState& state) const;
  void LoadManifest(const coordination::DatasetState& state);
  void OnManifest(const coordination::DatasetState& state, Result<SharedBytes> bytes);
  void OnListing(wire::DatasetKey key, Result<Listing> listing);
  void Make(const coordination::DatasetState& state, Listing listing);
  void FetchParts(const coordination::DatasetState& state);

  net::EventLoop& loop_;
  const Clock& clock_;
  Options options_;
  Parts parts_;
  wire::MemberId self_ = 0;
  const std::shared_ptr<DeriverEnds> deriver_ends_ = std::make_shared<DeriverEnds>();
  Datasets datasets_;
  std::set<wire::DatasetKey> loading_;  // whose manifests are awaited
  std::set<std::string> used_;          // Datasets that pods of this machine read
  std::optional<NodeDataset::Ending> ending_;
  CallbackGuard guard_;  // last
};

}  // namespace optcache::node
