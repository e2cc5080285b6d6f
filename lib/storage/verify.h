#pragma once

// Compares a manifest with what its source holds now.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage {

struct VerifyOptions {
  std::uint32_t samples_max = 0;  // how many objects to look at, evenly spread; 0: all
  bool bytes = false;             // read their samples, too, and compare these with their digests
  unsigned concurrent_stats_max = 32;
  unsigned concurrent_reads_max = 16;
  size_t named_max = 20;  // of what is found to differ, how many of a kind the report names
  Deadline deadline;
  // "checking" or "reading": how many of how many. From any thread, or empty.
  std::function<void(std::string_view step, std::uint64_t done, std::uint64_t all)> progress;
};

struct VerifyReport {
  std::uint64_t checked = 0;              // objects: samples, or the archives that they are in
  std::optional<std::uint64_t> compared;  // samples by their bytes, if that was wanted
  std::uint64_t missing_count = 0;
  std::uint64_t changed_count = 0;
  std::uint64_t damaged_count = 0;   // samples
  std::vector<std::string> missing;  // paths, by sample
  std::vector<std::string> changed;  // sentences that name the object and the difference, by sample
  // What has other bytes though its object looks unchanged; of an archive, which sample of it.
  std::vector<std::string> damaged;

  bool clean() const { return missing_count == 0 && changed_count == 0 && damaged_count == 0; }
};

// Compares size and validator of each object with what the store says of it. A sample that was
// missing when the manifest was made and still is does not count. Reads samples only with
// VerifyOptions::bytes, and those of unchanged objects alone; kInvalidArgument then, if the
// manifest has no digests. Blocks.
Result<VerifyReport> VerifyManifest(ObjectStore& store, const dataset::Manifest& manifest,
                                    const VerifyOptions& options);

}  // namespace optcache::storage
