#pragma once

// Makes a manifest of what a source holds.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "dataset/format.h"
#include "dataset/manifest.h"
#include "dataset/order.h"
#include "storage/object_store.h"

namespace optcache::storage {

// How far indexing has come.
struct IndexProgress {
  // Asking: for what the listing does not tell. Archives: looking into them. Indexes: reading the
  // lists of ranges. Reading: for the digests.
  enum class Step { kListing, kAsking, kArchives, kIndexes, kReading };
  Step step = Step::kListing;
  std::uint64_t done = 0;
  std::uint64_t all = 0;  // 0 while not known
};

// "listing", "asking for sizes", "looking into archives", "reading indexes", "reading".
std::string_view StepName(IndexProgress::Step step);

// How contents are known later: true for "Digest" (or "digest"), by the SHA-256 of each sample, for
// which indexing reads all bytes once; false for "Checksum", by size, ETag and time alone.
// kInvalidArgument lists these.
Result<bool> ParseVerify(std::string_view name);

struct IndexOptions {
  dataset::Format format = dataset::Format::kFiles;
  // Unset: chosen by what is there, see numbering.h. Groups are in the order of their archives, and
  // ranges in that of their indexes; these by path or, with kList, as listed.
  std::optional<dataset::Order> order;
  // Patterns, see glob.h, of objects: of samples, of archives, which are **/*.tar without any, of
  // lists of ranges, which are ranges.csv without any, of arrays, which are **/*.npy, or of indexes
  // of Megatron-LM, which are **/*.idx.
  std::vector<std::string> include;
  bool digests = false;  // reads all samples once and notes their SHA-256
  unsigned concurrent_stats_max = 32;
  unsigned concurrent_reads_max = 16;
  Deadline deadline;
  std::function<void(IndexProgress)> progress;  // from any thread, perhaps several at once
};

struct IndexReport {
  dataset::Manifest manifest;
  std::uint64_t objects = 0;            // listed
  std::uint64_t left_out = 0;           // objects that are no samples, and members of archives
  bool order_chosen = false;            // by what is there, since options.order was not set
  std::uint64_t missing_count = 0;      // samples that are listed but not there
  std::vector<std::string> missing;     // the first few of them
  std::uint64_t unreadable_count = 0;   // samples that this user may not read, as far as known
  std::vector<std::string> unreadable;  // the first few of them
  // Index files beside archives that do not fit them, and why: the archives' headers were read.
  std::vector<std::string> unfit_idx_files;
  // Archives that end without a mark, so that they may have been cut, and what was found in them.
  std::vector<std::string> unended;
  std::uint64_t unversioned_count = 0;  // samples of which the store tells neither ETag nor time
};

// Lists the store, numbers the samples and asks for sizes and validators that the listing does not
// tell. A sample that is listed but not there keeps its number, as ImageFolder has it: reading it
// will fail, and the report names it, as it does one that may not be read. Blocks until done or
// until the deadline. kInvalidArgument: nothing to index, or what numbering refuses, with a
// sentence on what to do; kNotFound: none of the samples is there; otherwise the store's error.
Result<IndexReport> BuildManifest(ObjectStore& store, const IndexOptions& options);

}  // namespace optcache::storage
