#pragma once

// Makes a manifest of samples that are ranges of objects.

#include "storage/index.h"

namespace optcache::storage {

// BuildManifest for IndexFormat::kRanges and kNpy: reads the lists of ranges, or the heads of the
// arrays, that the source holds, and looks whether the objects that they name have these bytes.
Result<IndexReport> BuildRangesManifest(ObjectStore& store, const IndexOptions& options);

}  // namespace optcache::storage
