#pragma once

// The sizes of a manifest's samples, for verbs that plan without a cluster.

#include <string>

#include "base/result.h"
#include "plan/sizes.h"

namespace optcache::cli {

// kInvalidArgument names the file: it is no manifest, or a sample has 4 GiB or more.
Result<plan::Sizes> SizesOfManifest(const std::string& file);

}  // namespace optcache::cli
