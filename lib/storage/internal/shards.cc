#include "storage/internal/shards.h"

#include <optional>
#include <string_view>
#include <utility>

#include "dataset/numbering.h"
#include "storage/internal/digest_many.h"
#include "storage/internal/stat_many.h"

namespace optcache::storage::internal {

Result<std::vector<std::uint32_t>> ChooseObjects(const ObjectListing& listing,
                                                 const IndexOptions& options,
                                                 const std::vector<std::string>& usual) {
  ASSIGN_OR_RETURN(dataset::GlobSet include,
                   dataset::GlobSet::Compile(options.include.empty() ? usual : options.include));
  RETURN_IF_ERROR(
      CheckUnfitKeys(listing, [&](std::string_view key) { return include.Matches(key); }));
  std::vector<std::string_view> paths;
  paths.reserve(listing.objects.size());
  for (const ListedObject& object : listing.objects)
    paths.emplace_back(object.path);
  const bool as_listed = options.order == dataset::Order::kList;
  ASSIGN_OR_RETURN(
      dataset::Numbering numbering,
      dataset::NumberSamples(paths, listing.top_folders,
                             {.order = as_listed ? dataset::Order::kList : dataset::Order::kPath,
                              .include = std::move(include)}));
  return std::move(numbering.objects);
}

Status AskForObjects(ObjectStore& store, std::span<ListedObject> objects,
                     const IndexOptions& options) {
  std::vector<ListedObject*> unknown;
  for (ListedObject& object : objects) {
    if (!object.info || !object.info->validator.known()) unknown.push_back(&object);
  }
  return StatMany(
      store,
      {.count = unknown.size(),
       .concurrent_max = options.concurrent_stats_max,
       .deadline = options.deadline},
      [&](size_t i) { return unknown[i]->path; },
      [&](size_t i, Result<ObjectInfo> info) {
        unknown[i]->info = info ? std::optional(*std::move(info)) : std::nullopt;
      },
      [](size_t) {});
}

// Of what is handed out, so a manifest without digests says what to read.
Result<std::vector<dataset::Digest>> DigestsOf(ObjectStore& store,
                                               const dataset::Manifest& manifest,
                                               const IndexOptions& options) {
  std::vector<dataset::Digest> digests(manifest.samples());
  RETURN_IF_ERROR(DigestSamples(
      store, manifest,
      {.count = manifest.samples(),
       .concurrent_max = options.concurrent_reads_max,
       .deadline = options.deadline},
      [&](size_t i, const dataset::Digest& digest) { digests[i] = digest; },
      [&](size_t done) {
        if (options.progress)
          options.progress(
              {.step = IndexProgress::Step::kReading, .done = done, .all = digests.size()});
      }));
  return digests;
}

std::uint64_t UnversionedSamples(const dataset::Manifest& manifest,
                                 std::span<const ListedObject> objects) {
  std::uint64_t unversioned = 0;
  for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
    if (!objects[manifest.ObjectOf(sample)].info->validator.known()) ++unversioned;
  }
  return unversioned;
}

}  // namespace optcache::storage::internal
