#pragma once

// Compares a manifest with what its source holds now.

#include <functional>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage {

struct VerifyOptions {
  std::uint32_t samples_max = 0;  // how many objects to look at, evenly spread; 0: all
  unsigned concurrent_stats_max = 32;
  size_t named_max = 20;  // of the objects found to differ, how many the report names
  Deadline deadline;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;  // from any thread, or empty
};

struct VerifyReport {
  std::uint64_t checked = 0;  // objects: samples, or the archives that they are in
  std::uint64_t missing_count = 0;
  std::uint64_t changed_count = 0;
  std::vector<std::string> missing;  // paths, by sample
  std::vector<std::string> changed;  // sentences that name the object and the difference, by sample

  bool clean() const { return missing_count == 0 && changed_count == 0; }
};

// Compares size and validator of each object with what the store says of it. A sample that was
// missing when the manifest was made and still is does not count. Blocks; reads no bytes.
Result<VerifyReport> VerifyManifest(ObjectStore& store, const dataset::Manifest& manifest,
                                    const VerifyOptions& options);

}  // namespace optcache::storage
