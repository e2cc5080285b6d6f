#pragma once

// What the sidecars of training pods say at their end, in their termination messages: what the
// cache saved (docs/user/what-it-saves.md), or what headspace was measured
// (docs/formats/headspace.md). The pods' owners have an Event with the sentence.

#include <map>
#include <string>

#include "base/clock.h"
#include "kube/events.h"
#include "kube/informer.h"

namespace optcache::manager {

// Where a training pod has what its sidecar said at its end, once it has.
inline constexpr const char* kLastWord = "/optcacheLastWord";

// Of a whole pod: {"about", "state", "message", "at"}, with when the sidecar ended. About
// "headspace", with its state, if the pod is marked as not for use, else about "saved". Null if the
// sidecar has not ended or has said nothing.
kube::Json LastWordOf(const kube::Json& pod);

// Used on the loop's thread only. What it borrows outlives it.
class LastWordWatch {
 public:
  LastWordWatch(const Clock& clock, kube::Informer& pods);
  LastWordWatch(const LastWordWatch&) = delete;
  LastWordWatch& operator=(const LastWordWatch&) = delete;

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
  std::map<kube::ObjectKey, Pod> ended_;
};

}  // namespace optcache::manager
