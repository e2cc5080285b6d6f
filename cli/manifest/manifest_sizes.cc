#include "cli/manifest/manifest_sizes.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/files.h"
#include "dataset/manifest.h"

namespace optcache::cli {

Result<plan::Sizes> SizesOfManifest(const std::string& file) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(file, dataset::kManifestBytesMax));
  ASSIGN_OR_RETURN(ManifestSizes manifest, SizesInManifest(std::move(bytes), file));
  return std::move(manifest.sizes);
}

Result<ManifestSizes> SizesInManifest(std::string bytes, const std::string& where) {
  Result<dataset::Manifest> manifest = dataset::Manifest::Parse(std::move(bytes));
  if (!manifest) return Error(std::move(manifest).error().WithContext(where));
  std::vector<std::uint32_t> sizes(manifest->samples());
  for (SampleId sample = 0; sample < sizes.size(); ++sample) {
    const ByteCount size = manifest->Size(sample);
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      return Error(Code::kInvalidArgument, where + ": sample " + std::to_string(sample) + " has " +
                                               std::to_string(size) +
                                               " bytes, 4 GiB at most are planned for");
    }
    sizes[sample] = static_cast<std::uint32_t>(size);
  }
  return ManifestSizes{.sizes = plan::Sizes(std::move(sizes)),
                       .digest = dataset::ToHex(manifest->digest())};
}

}  // namespace optcache::cli
