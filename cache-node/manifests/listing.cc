#include "cache-node/manifests/listing.h"

#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "dataset/manifest.h"

namespace optcache::node {

Result<Listing> ReadListing(SharedBytes manifest_bytes, const std::string& digest) {
  ASSIGN_OR_RETURN(const dataset::Manifest manifest,
                   dataset::Manifest::Parse(std::move(manifest_bytes)));
  if (dataset::ToHex(manifest.digest()) != digest) {
    return Error(Code::kDataLoss, "the manifest's digest is not the one asked for");
  }
  Listing listing;
  std::vector<std::uint32_t> sizes;
  sizes.reserve(manifest.samples());
  if (manifest.SampleDigest(0)) listing.digests.reserve(manifest.samples());
  for (SampleId id = 0; id < manifest.samples(); ++id) {
    const ByteCount size = manifest.Size(id);
    if (size > std::numeric_limits<std::uint32_t>::max()) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} has {}: samples of 4 GiB and more cannot be cached",
                               manifest.Path(id), FormatBytes(size)));
    }
    sizes.push_back(static_cast<std::uint32_t>(size));
    if (const auto sample = manifest.SampleDigest(id)) listing.digests.push_back(*sample);
  }
  listing.sizes = plan::Sizes(std::move(sizes));
  return listing;
}

}  // namespace optcache::node
