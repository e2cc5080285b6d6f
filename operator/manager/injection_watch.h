#pragma once

// Training pods that were created without the sidecar that their label asks for, as the API server
// lets them through when it does not reach the injector: their owners are told.

#include <cstdint>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/counters.h"
#include "kube/events.h"
#include "kube/informer.h"

namespace optcache::manager {

// Whether this pod wants a sidecar and can no longer get one.
bool IsUninjected(const kube::Json& pod);

// The object that people look at: the pod's controller, else the pod.
kube::ObjectReference OwnerOf(const kube::Json& pod);

// Used on the loop's thread only. What it borrows outlives it.
class InjectionWatch {
 public:
  InjectionWatch(const Clock& clock, kube::Informer& pods);
  InjectionWatch(const InjectionWatch&) = delete;
  InjectionWatch& operator=(const InjectionWatch&) = delete;

  // While this replica leads: `events` outlives the call of Follow.
  void Lead(kube::EventRecorder& events) { events_ = &events; }
  void Follow() { events_ = nullptr; }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void OnChange(const kube::ObjectChange& change);

  const Clock& clock_;
  kube::EventRecorder* events_ = nullptr;
  std::set<kube::ObjectKey> uninjected_;
};

}  // namespace optcache::manager
