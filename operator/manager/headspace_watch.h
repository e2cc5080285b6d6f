#pragma once

// Training pods in which headspace was measured: their owners have an Event with the report's
// sentence, which the sidecar leaves as its termination message (docs/formats/headspace.md).

#include <map>
#include <string>

#include "base/clock.h"
#include "kube/events.h"
#include "kube/informer.h"

namespace optcache::manager {

// Where a training pod that is marked has what its sidecar said at its end, once it has.
inline constexpr const char* kHeadspaceSaid = "/optcacheHeadspace";

// Of a whole pod: the sidecar's state, its message and when it ended, as {"state", "message",
// "at"}; null if it has not ended, has said nothing, or the pod is not marked.
kube::Json HeadspaceOf(const kube::Json& pod);

// Used on the loop's thread only. What it borrows outlives it.
class HeadspaceWatch {
 public:
  HeadspaceWatch(const Clock& clock, kube::Informer& pods);
  HeadspaceWatch(const HeadspaceWatch&) = delete;
  HeadspaceWatch& operator=(const HeadspaceWatch&) = delete;

  // While this replica leads it tells, also of pods that ended before. `events` outlives the call
  // of Follow.
  void Lead(kube::EventRecorder& events);
  void Follow() { events_ = nullptr; }

 private:
  struct Pod {
    std::string uid;
    kube::ObjectReference owner;
    kube::Json said;
    bool told = false;
  };
  void OnChange(const kube::ObjectChange& change);
  void Tell(const std::string& name, Pod& pod);

  const Clock& clock_;
  kube::EventRecorder* events_ = nullptr;
  std::map<kube::ObjectKey, Pod> measured_;
};

}  // namespace optcache::manager
