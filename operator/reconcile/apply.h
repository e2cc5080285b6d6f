#pragma once

// Does what was decided.

#include <functional>

#include "kube/apply.h"
#include "kube/controller.h"
#include "kube/events.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

// The object as an informer shows it, null if none does.
using FindPresent =
    std::function<kube::ObjectCache::Entry(const kube::Resource&, const kube::ObjectKey&)>;

// Used on the loop's thread only. What it borrows outlives it.
class DecisionRunner {
 public:
  DecisionRunner(kube::Applier& applier, kube::EventRecorder& events, FindPresent present)
      : applier_(applier), events_(events), present_(std::move(present)) {}

  // Applies, records the events about `regarding` once that is done, deletes, and ends the
  // reconciliation. What fails is told as an event, too: it may be a quota, or an admission webhook
  // of somebody else.
  void Run(Decision decision, const kube::ObjectReference& regarding, kube::ReconcileDone done);

 private:
  kube::Applier& applier_;
  kube::EventRecorder& events_;
  FindPresent present_;
};

}  // namespace optcache::reconcile
