#pragma once

// All that only the leader does, from the moment that it leads to its end.

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/counters.h"
#include "control/control_gate.h"
#include "control/control_service.h"
#include "kube/apply.h"
#include "kube/controller.h"
#include "kube/events.h"
#include "kube/fenced_client.h"
#include "net/event_loop.h"
#include "operator/manager/certificate_keeper.h"
#include "operator/manager/cluster_sync.h"
#include "operator/manager/dataset_directory.h"
#include "operator/manager/injection_watch.h"
#include "operator/manager/last_word_watch.h"
#include "operator/manager/options.h"
#include "operator/manager/reconcilers.h"
#include "operator/manager/watches.h"
#include "operator/reconcile/apply.h"

namespace optcache::manager {

// Used on the loop's thread only. What it borrows outlives it.
class Leadership {
 public:
  struct Parts {
    net::EventLoop& loop;
    const Clock& clock;
    kube::Client& client;  // its writes are fenced here
    kube::WritePermit permit;
    Watches& watches;
    DatasetDirectory& datasets;
    CertificateKeeper& certificates;
    InjectionWatch& injection;
    LastWordWatch& last_words;
    control::ControlGate& gate;
  };
  // `term` is that of the Lease.
  Leadership(Parts parts, const OperatorOptions& options, std::uint64_t term);
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void WatchDatasets();
  void WatchPlans();
  void WatchWarmups();
  void WatchBundles();
  // What placement depends on; callbacks of informers outlive this object.
  void TouchOnChange(kube::Informer& informer,
                     std::function<bool(const kube::ObjectChange&)> matters);
  void OnPlaced(const kube::ObjectKey& dataset);
  kube::ObjectCache::Entry Present(const kube::Resource& resource, const kube::ObjectKey& key);

  Parts parts_;
  kube::FencedClient client_;
  kube::Applier applier_;
  kube::EventRecorder events_;
  reconcile::DecisionRunner runner_;
  control::ControlService service_;
  ClusterSync cluster_;
  DatasetReconciler dataset_reconciler_;
  CachePlanReconciler plan_reconciler_;
  WarmupReconciler warmup_reconciler_;
  BundleReconciler bundle_reconciler_;
  kube::Controller dataset_controller_;
  kube::Controller plan_controller_;
  kube::Controller warmup_controller_;
  kube::Controller bundle_controller_;
  std::shared_ptr<Leadership*> self_;  // for callbacks that outlive it; null in it then
};

}  // namespace optcache::manager
