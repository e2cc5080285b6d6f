#pragma once

// Kubernetes Events: what `kubectl describe` and `kubectl events` show people about an object.

#include <cstdint>
#include <memory>
#include <string>

#include "base/counters.h"
#include "kube/client.h"
#include "kube/event_series.h"
#include "net/event_loop.h"

namespace optcache::kube {

struct EventRecorderOptions {
  std::string controller;  // "optcache.io/operator"
  std::string instance;    // the pod's name
  EventSeriesOptions series;
};

// Never in the way: what cannot be written is dropped, counted and logged at debug. Repetitions
// become one Event with a count. Used on the loop's thread only. `loop`, `clock` and `client`
// outlive it.
class EventRecorder {
 public:
  EventRecorder(net::EventLoop& loop, const Clock& clock, Client& client,
                EventRecorderOptions options);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // `regarding` is the object that its user owns and looks at.
  void Record(const ObjectReference& regarding, const EventText& text);

  // optcache_events_* in docs/metrics.md.
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::kube
