#pragma once

#include <functional>
#include <string>

#include "dataset/digest.h"
#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage::internal {

struct DigestManyOptions {
  size_t count = 0;  // objects to read, numbered from 0
  unsigned concurrent_max = 16;
  Deadline deadline;
};

// Reads many objects whole, several at a time and each piece by piece, and gives the SHA-256 of
// each to `take`. The first error ends it and is returned. `take` and `report` (with the number of
// objects begun so far, now and then) run on several threads at once; blocks until all are done.
Status DigestMany(ObjectStore& store, const DigestManyOptions& options,
                  const std::function<ListedObject(size_t index)>& object_of,
                  const std::function<void(size_t index, const dataset::Digest&)>& take,
                  const std::function<void(size_t done)>& report);

// The same for the first `count` samples of a manifest, as they are handed out. Each thread holds
// one sample as a whole.
Status DigestSamples(ObjectStore& store, const dataset::Manifest& manifest,
                     const DigestManyOptions& options,
                     const std::function<void(size_t index, const dataset::Digest&)>& take,
                     const std::function<void(size_t done)>& report);

}  // namespace optcache::storage::internal
