#pragma once

// What is in the tar archives of a store, found by reading little more than their headers.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "dataset/tar_reader.h"
#include "storage/object_store.h"

namespace optcache::storage {

// Index files that lie beside archives (dataset/tar_idx.h), by their path.
using TarIdxFiles = std::map<std::string, ListedObject>;

struct TarIndexOptions {
  TarIdxFiles idx_files;
  unsigned concurrent_max = 16;  // archives at a time
  Deadline deadline;
  // From any thread, perhaps several at once; may be empty.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

// What is in one archive.
struct TarListing {
  std::vector<dataset::TarFile> files;  // regular ones, in its order
  bool ended = false;                   // see TarReader
};

struct TarContents {
  std::vector<std::vector<dataset::TarFile>> files;  // by archive
  std::vector<std::string> unfit_idx_files;          // with the reason: "a.idx: line 1: …"
  // Archives without an end, and how many files they have: "a.tar (3 files)".
  std::vector<std::string> unended;
};

// What is in one archive, by ranged reads of its headers: where data is short, one read covers many
// headers and what lies between; where it is long, it is left out. The store's errors, or the
// archive's (see TarReader), which name it.
Result<TarListing> IndexTar(ObjectStore& store, const ListedObject& archive, Deadline deadline);

// The files that the index file beside the archive names: three short reads instead of all headers.
// The store's errors, or kInvalidArgument with the reason why it does not fit the archive as it is
// now: the header of its last member and the archive's end are looked at, too.
Result<TarListing> ReadTarIdx(ObjectStore& store, const ListedObject& idx,
                              const ListedObject& archive, Deadline deadline);

// What is in many archives, by index files where they fit and else by headers. Blocks; ends with
// the first error.
Result<TarContents> IndexTars(ObjectStore& store, const std::vector<ListedObject>& archives,
                              const TarIndexOptions& options);

}  // namespace optcache::storage
