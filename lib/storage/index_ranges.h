#pragma once

// Makes a manifest of samples that are ranges of objects.

#include "storage/index.h"

namespace optcache::storage {

// BuildManifest for dataset::Format::kRanges, kNpy and kMegatron: reads the indexes that the source
// holds, or of arrays their heads, and looks whether the objects that they name have these bytes.
Result<IndexReport> BuildRangesManifest(ObjectStore& store, const IndexOptions& options);

}  // namespace optcache::storage
