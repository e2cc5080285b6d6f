#pragma once

// Training pods that were created without the sidecar that their label asks for, as the API server
// lets them through when it does not reach the injector: their owners are told.

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/counters.h"
#include "kube/events.h"
#include "kube/informer.h"

namespace optcache::manager {

// Whether this pod wants a sidecar and can no longer get one.
bool IsUninjected(const kube::Json& pod);

// Whether the MutatingWebhookConfiguration has the API server leave pods of this namespace alone.
bool LeavesAlone(const kube::Json& configuration, const std::string& ns);

// The object that people look at: the pod's controller, else the pod.
kube::ObjectReference OwnerOf(const kube::Json& pod);

// Used on the loop's thread only. What it borrows outlives it.
class InjectionWatch {
 public:
  // `injectors`: of the MutatingWebhookConfiguration.
  InjectionWatch(const Clock& clock, kube::Informer& pods, kube::Informer& injectors);
  InjectionWatch(const InjectionWatch&) = delete;
  InjectionWatch& operator=(const InjectionWatch&) = delete;

  // While this replica leads it tells, also of pods that came before: who leads after an outage was
  // not there in it. `events` outlives the call of Follow.
  void Lead(kube::EventRecorder& events);
  void Follow() { events_ = nullptr; }

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Pod {
    std::string uid;
    kube::ObjectReference owner;
    double created_at = 0;  // Unix seconds
    bool settled = false;   // told, or nothing to tell
  };
  void OnChange(const kube::ObjectChange& change);
  void TellAll();
  void Tell(const std::string& ns, Pod& pod);
  bool IsLeftAlone(const std::string& ns) const;

  const Clock& clock_;
  const kube::Informer& injectors_;
  kube::EventRecorder* events_ = nullptr;
  std::map<kube::ObjectKey, Pod> uninjected_;
};

}  // namespace optcache::manager
