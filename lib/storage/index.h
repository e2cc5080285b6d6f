#pragma once

// Makes a manifest of what a source holds.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage {

// How far indexing has come.
struct IndexProgress {
  // Asking: for what the listing does not tell. Reading: for the digests.
  enum class Step { kListing, kAsking, kReading };
  Step step = Step::kListing;
  std::uint64_t done = 0;
  std::uint64_t all = 0;  // 0 while not known
};

// "listing", "asking for sizes", "reading".
std::string_view StepName(IndexProgress::Step step);

struct IndexOptions {
  std::optional<dataset::Order> order;  // unset: chosen by what is there, see numbering.h
  std::vector<std::string> include;     // patterns, see glob.h
  bool digests = false;                 // reads all samples once and notes their SHA-256
  unsigned concurrent_stats_max = 32;
  unsigned concurrent_reads_max = 16;
  Deadline deadline;
  std::function<void(IndexProgress)> progress;  // from any thread, perhaps several at once
};

struct IndexReport {
  dataset::Manifest manifest;
  std::uint64_t objects = 0;            // listed; those that are no samples are left out
  std::uint64_t missing_count = 0;      // samples that are listed but not there
  std::vector<std::string> missing;     // the first few of them
  std::uint64_t unversioned_count = 0;  // samples of which the store tells neither ETag nor time
};

// Lists the store, numbers the samples and asks for sizes and validators that the listing does not
// tell. A sample that is listed but not there keeps its number, as ImageFolder has it: reading it
// will fail, and the report names it. Blocks until done or until the deadline.
// kInvalidArgument: nothing to index, or what numbering refuses, with a sentence on what to do;
// kNotFound: none of the samples is there; otherwise the store's error.
Result<IndexReport> BuildManifest(ObjectStore& store, const IndexOptions& options);

}  // namespace optcache::storage
