#pragma once

// What is different in a source since it was indexed before, as two manifests have it.

#include <cstdint>
#include <string>

#include "dataset/manifest.h"

namespace optcache::dataset {

// Objects by their paths.
struct ChangedObjects {
  std::uint64_t count = 0;
  std::string first;  // the path of the first of them, as its manifest numbers them

  friend bool operator==(const ChangedObjects&, const ChangedObjects&) = default;
};

struct ManifestChanges {
  ChangedObjects added;    // numbered as in `after`
  ChangedObjects changed;  // of another size or validator; likewise
  ChangedObjects removed;  // numbered as in `before`

  friend bool operator==(const ManifestChanges&, const ManifestChanges&) = default;
};

// Takes 16 bytes for each object of both while it runs.
ManifestChanges CompareManifests(const Manifest& before, const Manifest& after);

}  // namespace optcache::dataset
