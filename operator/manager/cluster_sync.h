#pragma once

// Keeps the coordinator's Datasets as the cluster wants them: where they are placed follows from
// Kubernetes' objects and from what nodes report, and may change with each of them.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "capacity/settled_reads.h"
#include "control/control_service.h"
#include "net/event_loop.h"
#include "net/periodic_timer.h"
#include "operator/manager/dataset_directory.h"
#include "operator/manager/watches.h"
#include "operator/reconcile/cluster/cluster_plan.h"
#include "operator/reconcile/cluster/cordons.h"
#include "operator/reconcile/cluster/drift.h"
#include "operator/reconcile/cluster/missing_nodes.h"
#include "operator/reconcile/cluster/saved_totals.h"
#include "operator/reconcile/cluster/take_revisions.h"

namespace optcache::manager {

// Used on the loop's thread only. Ticks the service while it lives; what it borrows outlives it.
class ClusterSync {
 public:
  struct Parts {
    net::EventLoop& loop;
    const Clock& clock;
    Watches& watches;
    const DatasetDirectory& datasets;
    control::ControlService& service;
    std::function<bool()> leads;  // by the clock, at this moment
  };
  // `on_placed` is called with each Dataset whose placement is known or has changed. Begins when
  // all watches are synced; `on_begun` then, once.
  ClusterSync(Parts parts, std::function<void(const kube::ObjectKey&)> on_placed,
              std::function<void()> on_begun);
  ClusterSync(const ClusterSync&) = delete;
  ClusterSync& operator=(const ClusterSync&) = delete;

  // Something that placement depends on has changed.
  void Touch() { touched_ = true; }

  // For a Dataset's status: nothing is known before nodes have been heard.
  std::optional<reconcile::Placed> PlacedOf(const std::string& dataset) const;
  // For how long it has been on the nodes on which it is; 0: it is on none.
  Duration PlacedFor(const std::string& dataset) const;
  bool IsTooMany(const std::string& dataset) const { return plan_.too_many.contains(dataset); }
  // What the cache has saved of it in all; nullopt: not known yet.
  std::optional<coordination::Savings> SavedOf(const std::string& dataset) const;
  std::optional<reconcile::CacheView> ViewOf(const std::string& dataset) const;
  std::optional<reconcile::PlanView> PlanViewOf(const std::string& dataset) const;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void Tick();
  void LookWhatIsKnown(MonotonicTime now);
  void TakeSavings();
  bool TakeReads(MonotonicTime now);
  bool SettleReads(MonotonicTime now);
  bool OrdersHaveChanged() const;
  bool KnowsAll() const;
  reconcile::RevisionInForce InForce(const std::string& dataset) const;
  void Replan(const reconcile::ClusterSigns& signs);
  reconcile::ClusterObserved Observe(const coordination::ClusterReads& reads) const;
  void LookAtMachines();
  std::vector<std::string> MissingOf(const std::string& dataset, Duration longer_than) const;
  std::set<kube::ObjectKey> DatasetsOfGpuPods() const;

  Parts parts_;
  std::function<void(const kube::ObjectKey&)> on_placed_;
  std::function<void()> on_begun_;
  bool begun_ = false;
  MonotonicTime begun_at_;
  bool learning_ = true;  // at the last look
  bool nobody_ = false;   // no node has reported to this leader for long
  bool touched_ = true;
  coordination::Version seen_;  // of the coordinator's state, at the last look
  MonotonicTime looked_at_;
  coordination::ClusterStatus status_;  // at the last look
  reconcile::ClusterSigns signs_;
  coordination::SettledReads reads_;
  reconcile::ClusterPlan plan_;
  std::map<std::string, MonotonicTime> placed_at_;       // when plan_ took its nodes, by Dataset
  std::map<std::string, std::set<std::string>> warmed_;  // as plan_ goes by them
  std::map<std::string, coordination::RolloutState> rollouts_;  // as plan_ goes by them
  std::map<std::string, coordination::RolloutOrders> orders_;   // in plan_
  std::map<std::string, reconcile::RevisionInForce> in_force_;  // by plan_
  reconcile::SavedTotals saved_;
  reconcile::Drift drift_;
  reconcile::MissingNodes missing_;
  std::map<std::string, reconcile::MemberMachine> machines_;  // since something was touched
  reconcile::Cordons cordons_;
  std::set<std::string> draining_;  // Kubernetes nodes, in machines_
  net::PeriodicTimer tick_;
};

}  // namespace optcache::manager
