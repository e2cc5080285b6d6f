#pragma once

// Keeps objects as they should be: whatever changes puts a key into a queue, and a reconciler looks
// at the present state of that key, not at what changed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/status.h"
#include "kube/informer.h"
#include "kube/work_queue.h"
#include "net/event_loop.h"

namespace optcache::kube {

struct ReconcileResult {
  // An error: again, later and later; logged and counted.
  Status status;
  // Ok: again after this long, or when something changes.
  std::optional<Duration> requeue_after;
};

// Ends one reconciliation; call it once, now or later, on the loop's thread. If the last copy dies
// without a call, that is a failure.
class ReconcileDone {
 public:
  class Work;
  explicit ReconcileDone(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  void operator()(ReconcileResult result) const;

 private:
  std::shared_ptr<Work> work_;  // shared by the copies that callbacks hold
};

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // Makes the world as the object of `key` says, or cleans up if it is gone. Never two of one key
  // at a time: the key stays busy until `done`, and so does one of `max_concurrent`.
  virtual void Reconcile(const ObjectKey& key, ReconcileDone done) = 0;
};

struct ControllerOptions {
  std::string name;
  std::size_t max_concurrent = 4;
  // All keys of the primary informer once in this time (and a tenth by chance), events or not.
  Duration resync = std::chrono::hours(10);
  // A reconciliation that takes longer is logged. It goes on: nothing here can end it, and a second
  // one beside it would act on the same object.
  Duration late_after = std::chrono::minutes(5);
  WorkQueueOptions queue;  // its name is the controller's
  std::uint64_t seed = 0;
};

// Which keys a change concerns.
using MapFunction = std::function<std::vector<ObjectKey>(const ObjectChange&)>;
MapFunction MapToSelf();
// The controlling owner, if it is of that kind: before and after the change.
MapFunction MapToController(const Resource& owner);

// Used on the loop's thread only. `loop`, `clock`, `reconciler` and the informers outlive it.
class Controller {
 public:
  Controller(net::EventLoop& loop, const Clock& clock, ControllerOptions options,
             Reconciler& reconciler);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // The kind that is reconciled. Changes of metadata.generation, labels, annotations and deletion
  // count, mere changes of status do not.
  void For(Informer& informer);
  // What else matters to it.
  void Watch(Informer& informer, MapFunction map);

  // Works once all its informers are synced.
  void Start();
  // Takes no new keys; calls back when those under way have ended. Start goes on.
  void Stop(std::function<void()> stopped);

  void Enqueue(const ObjectKey& key);
  void EnqueueAfter(const ObjectKey& key, Duration wait);
  // Nothing waits or is under way (what is due later does not count).
  bool idle() const;

  // workqueue_* and optcache_reconcile_* in docs/metrics.md.
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with what ends later: ReconcileDone
};

}  // namespace optcache::kube
