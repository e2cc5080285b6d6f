#pragma once

// Makes a manifest of the tar archives that a source holds.

#include "storage/index.h"

namespace optcache::storage {

// BuildManifest for dataset::Format::kTar and kTarFiles: chooses the archives, looks into them and
// numbers what is in them.
Result<IndexReport> BuildTarManifest(ObjectStore& store, const IndexOptions& options);

}  // namespace optcache::storage
