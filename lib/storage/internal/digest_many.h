#pragma once

#include <functional>
#include <span>
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
// a sample of up to 4 MiB as a whole.
Status DigestSamples(ObjectStore& store, const dataset::Manifest& manifest,
                     const DigestManyOptions& options,
                     const std::function<void(size_t index, const dataset::Digest&)>& take,
                     const std::function<void(size_t done)>& report);

// The same for `samples` of a manifest with digests, compared with these: `take` gets for each
// whether it is the same, or why that is not known: kNotFound, or kConflict from an object that is
// another one now. What differs is read once more, past caches, before it counts. The count of
// `options` is not used.
Status CompareSamples(ObjectStore& store, const dataset::Manifest& manifest,
                      std::span<const SampleId> samples, DigestManyOptions options,
                      const std::function<void(size_t index, Result<bool> same)>& take,
                      const std::function<void(size_t done)>& report);

}  // namespace optcache::storage::internal
