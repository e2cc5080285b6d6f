#pragma once

// Lists a tree of files, several folders at a time: over a network file system each look at a file
// is a round trip.

#include <sys/stat.h>

#include <string>

#include "base/clock.h"
#include "storage/object_store.h"

namespace optcache::storage::internal {

struct WalkOptions {
  std::string root;
  unsigned threads = 8;  // look at the files of one large folder together, too
  Deadline deadline;
  ListProgress progress;  // may be empty
};

ObjectInfo InfoOf(const struct stat& file);

// Every file below the root, links followed as Python's os.walk(followlinks=True) does, sorted by
// path. What is no regular file, a dangling link for example, is listed without info.
// kInvalidArgument: a link leads back to a folder above it, or a path is too long for a manifest;
// kPermissionDenied: a link leads out of the root, or a folder cannot be read, and a dataset with
// holes helps nobody. Files that go meanwhile are listed without info; a folder that does is
// kNotFound.
Result<ObjectListing> Walk(const WalkOptions& options, const Clock& clock);

}  // namespace optcache::storage::internal
