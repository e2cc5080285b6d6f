#pragma once

// A read-only copy of the objects of one kind that follows the API server: list, watch, and again
// from where it stopped, whatever happens in between.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/counters.h"
#include "kube/client.h"
#include "kube/object_cache.h"
#include "kube/watch_cycle.h"
#include "net/event_loop.h"

namespace optcache::kube {

// `before` null: it is new; `after` null: it is gone. Never both.
struct ObjectChange {
  ObjectKey key;
  ObjectCache::Entry before;
  ObjectCache::Entry after;
};

using ChangeCallback = std::function<void(const ObjectChange&)>;

// Takes what nobody here reads out of an object before it is kept: memory is what a cache of five
// thousand pods costs. It must leave metadata's name, namespace, uid and resourceVersion.
using Transform = std::function<void(Json&)>;

// The default: without metadata.managedFields.
void StripManagedFields(Json& object);
// Keeps apiVersion, kind, metadata without managedFields, and what lies at these pointers.
Transform KeepOnly(std::vector<std::string> pointers);

struct InformerOptions {
  Resource resource;
  Selection selection;
  Transform transform = StripManagedFields;
  std::map<std::string, IndexFunction> indexes;
  WatchCycleOptions cycle;
  std::uint64_t seed = 0;  // of the jitter
};

// Used on the loop's thread only. Stops when it dies. `loop`, `clock` and `client` outlive it.
class Informer {
 public:
  Informer(net::EventLoop& loop, const Clock& clock, Client& client, InformerOptions options);
  ~Informer();
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

  // Called for each change after the cache has it, and at once for what the cache holds already.
  // What happened while the watch was broken comes as the difference; what the transform hides is
  // no change: a new resourceVersion alone is not told. Callbacks live as long as the
  // informer; they may stop it, but not destroy it or add others.
  void OnChange(ChangeCallback callback);
  // Called once the first list is complete; at once if it is.
  void OnSynced(std::function<void()> callback);

  void Start();
  // Keeps the cache; no more changes come.
  void Stop();

  // The first list is complete. Stays so: an old copy is better than none.
  bool synced() const;
  // When the server was last heard: a list, an event or a bookmark.
  MonotonicTime last_heard() const;
  const ObjectCache& cache() const;
  const Resource& resource() const;

  // optcache_informer_* in docs/metrics.md.
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace optcache::kube
