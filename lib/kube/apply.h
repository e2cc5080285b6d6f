#pragma once

// Carries out what was decided, by server-side apply under one field manager, and writes nothing
// when nothing would change.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/counters.h"
#include "kube/client.h"
#include "kube/object_cache.h"

namespace optcache::kube {

struct ApplyItem {
  Resource resource;
  Json object;              // apiVersion, kind, metadata.name, and all fields that we want
  std::string subresource;  // "status"
  // The object as an informer shows it, null if it shows none. Somebody else's change to what we
  // want is seen here.
  ObjectCache::Entry present;
  // Only if there is none of that name, also none that the informer does not show yet: nothing of
  // somebody else's is taken over.
  bool create_only = false;
  // Not empty: kConflict if the object has another resourceVersion by now.
  std::string resource_version{};
};

struct DeleteItem {
  Resource resource;
  ObjectKey key;
  DeleteOptions options;
};

struct ApplyOutcome {
  std::size_t written = 0;
  std::size_t skipped = 0;
};

struct ApplierOptions {
  std::string field_manager;
  // Remembered so that equal applies can be left out; beyond it the oldest are applied once more.
  std::size_t max_remembered = 65'536;
};

// Used on the loop's thread only. `client` outlives it. Nothing is called after it has died.
//
// An apply is left out when the same was applied before by this process, and the fields are still
// as the server then made them in `present`, or `present` is older than that answer. So a new
// process applies each object once, which the server takes as no change.
class Applier {
 public:
  using Callback = std::function<void(ApiResult<ApplyOutcome>)>;

  Applier(Client& client, ApplierOptions options);
  ~Applier();
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;

  // Applies one after the other, then deletes; what is gone already is deleted. Stops at the first
  // error. Calls back from within Run if there is nothing to write.
  void Run(std::vector<ApplyItem> applies, std::vector<DeleteItem> deletes, Callback callback);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // shared with the requests under way
};

// The part of `object` that `wanted` speaks of, in its shape: members of objects; entries of arrays
// of objects by their "name", "type", "key", "uid", "ip" or "mountPath", other arrays whole.
Json Project(const Json& wanted, const Json& object);

}  // namespace optcache::kube
