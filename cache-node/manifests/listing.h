#pragma once

// What a node needs of a manifest.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/shared_bytes.h"
#include "dataset/digest.h"
#include "plan/sizes.h"

namespace optcache::node {

struct Listing {
  plan::Sizes sizes;
  std::vector<dataset::Digest> digests;  // by sample; empty if the manifest has none
};

// Thread-safe; takes seconds for a manifest of hundreds of MiB. kDataLoss: it has another digest.
// kInvalidArgument: it is none, or has a sample that is too large for the cache.
Result<Listing> ReadListing(SharedBytes manifest_bytes, const std::string& digest);

}  // namespace optcache::node
