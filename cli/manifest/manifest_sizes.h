#pragma once

// The sizes of a manifest's samples, for subcommands that plan without a cluster.

#include <string>

#include "base/result.h"
#include "plan/sizes.h"

namespace optcache::cli {

struct ManifestSizes {
  plan::Sizes sizes;
  std::string digest;  // of the manifest, in hexadecimal digits
};

// Of a manifest's bytes. kInvalidArgument names where they come from: they are no manifest, or a
// sample has 4 GiB or more.
Result<ManifestSizes> SizesInManifest(std::string bytes, const std::string& where);
// The same of a file.
Result<plan::Sizes> SizesOfManifest(const std::string& file);

}  // namespace optcache::cli
