#pragma once

// The steps that indexing archives and indexing ranges have in common.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "storage/index.h"

namespace optcache::storage::internal {

// Which of the listed objects `include`, or `usual` where it is empty, chooses: their places in the
// listing, by path or, with kList, as listed. kInvalidArgument: none, or two with one path.
Result<std::vector<std::uint32_t>> ChooseObjects(const ObjectListing& listing,
                                                 const IndexOptions& options,
                                                 const std::vector<std::string>& usual);

// Asks for what a listing does not tell of the objects. One that is not there keeps no info.
Status AskForObjects(ObjectStore& store, std::span<ListedObject> objects,
                     const IndexOptions& options);

// The SHA-256 of each sample of a manifest that has none, as it is handed out.
Result<std::vector<dataset::Digest>> DigestsOf(ObjectStore& store,
                                               const dataset::Manifest& manifest,
                                               const IndexOptions& options);

// Samples in objects of which the store tells neither ETag nor time. `objects` are those of the
// manifest.
std::uint64_t UnversionedSamples(const dataset::Manifest& manifest,
                                 std::span<const ListedObject> objects);

}  // namespace optcache::storage::internal
