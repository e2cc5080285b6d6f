// Makes a manifest of a listing, in steps that may each take long and tell their progress.
//
//   List ─► Number: which objects are samples, in which order ─► AskForTheRest: sizes and versions
//        ─► ReadDigests, if they are wanted ─► Assemble
//
// The idea: numbers come first and everything else follows them, so that only samples are asked for
// and read. An object that is listed and not there keeps its number, as its neighbours' numbers
// depend on it; the report names it. Formats of several samples an object go to index_tar.cc and
// index_ranges.cc.

#include "storage/index.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "dataset/image_folder.h"
#include "dataset/manifest_builder.h"
#include "dataset/numbering.h"
#include "storage/index_ranges.h"
#include "storage/index_tar.h"
#include "storage/internal/digest_many.h"
#include "storage/internal/stat_many.h"

namespace optcache::storage {
namespace {

using dataset::Manifest;
using dataset::ManifestBuilder;
using dataset::Numbering;

constexpr size_t kNamed = 5;

Result<Numbering> Number(const ObjectListing& listing, const IndexOptions& options) {
  ASSIGN_OR_RETURN(dataset::GlobSet include, dataset::GlobSet::Compile(options.include));
  std::vector<std::string_view> paths;
  paths.reserve(listing.objects.size());
  for (const ListedObject& object : listing.objects)
    paths.emplace_back(object.path);
  dataset::NumberingOptions numbering = {.order = options.order, .include = std::move(include)};
  numbering.order = dataset::ChosenOrder(paths, numbering);
  const bool images = numbering.order == dataset::Order::kImageFolder;
  RETURN_IF_ERROR(CheckUnfitKeys(listing, [&](std::string_view key) {
    return numbering.include.empty() ? !images || dataset::IsImage(key)
                                     : numbering.include.Matches(key);
  }));
  return dataset::NumberSamples(paths, listing.top_folders, numbering);
}

Status AskForTheRest(ObjectStore& store, ObjectListing& listing, const Numbering& numbering,
                     const IndexOptions& options) {
  std::vector<ListedObject*> unknown;
  for (const std::uint32_t object : numbering.objects) {
    const auto& info = listing.objects[object].info;
    if (!info || !info->validator.known()) unknown.push_back(&listing.objects[object]);
  }
  const auto path_of = [&](size_t i) { return unknown[i]->path; };
  const auto take = [&](size_t i, Result<ObjectInfo> info) {
    unknown[i]->info = info ? std::optional(*std::move(info)) : std::nullopt;
  };
  const auto report = [&](size_t done) {
    if (!options.progress) return;
    options.progress({.step = IndexProgress::Step::kAsking, .done = done, .all = unknown.size()});
  };
  return internal::StatMany(store,
                            {.count = unknown.size(),
                             .concurrent_max = options.concurrent_stats_max,
                             .deadline = options.deadline},
                            path_of, take, report);
}

// By sample; empty if they are not wanted.
Result<std::vector<dataset::Digest>> ReadDigests(ObjectStore& store, const ObjectListing& listing,
                                                 const Numbering& numbering,
                                                 const IndexOptions& options) {
  std::vector<dataset::Digest> digests;
  if (!options.digests) return digests;
  digests.resize(numbering.objects.size());
  const auto object_of = [&](size_t i) { return listing.objects[numbering.objects[i]]; };
  const auto take = [&](size_t i, const dataset::Digest& digest) { digests[i] = digest; };
  const auto report = [&](size_t done) {
    if (!options.progress) return;
    options.progress({.step = IndexProgress::Step::kReading, .done = done, .all = digests.size()});
  };
  RETURN_IF_ERROR(internal::DigestMany(store,
                                       {.count = digests.size(),
                                        .concurrent_max = options.concurrent_reads_max,
                                        .deadline = options.deadline},
                                       object_of, take, report));
  return digests;
}

Result<Manifest> Assemble(const ObjectListing& listing, Numbering numbering,
                          const std::vector<dataset::Digest>& digests) {
  const bool has_classes = !numbering.classes.empty();
  ManifestBuilder builder(numbering.order, std::move(numbering.classes));
  for (size_t sample = 0; sample < numbering.objects.size(); ++sample) {
    const ListedObject& object = listing.objects[numbering.objects[sample]];
    const ObjectInfo info = object.info.value_or(ObjectInfo{});
    RETURN_IF_ERROR(
        builder.Add({.path = object.path,
                     .size = info.size,
                     .class_index = has_classes ? numbering.class_of[sample] : dataset::kNoClass,
                     .validator = info.validator,
                     .digest = digests.empty() ? std::nullopt : std::optional(digests[sample])}));
  }
  return std::move(builder).Finish();
}

Result<IndexReport> BuildFilesManifest(ObjectStore& store, const IndexOptions& options) {
  const auto listed = [&](std::uint64_t objects) {
    if (options.progress)
      options.progress({.step = IndexProgress::Step::kListing, .done = objects});
  };
  ASSIGN_OR_RETURN(ObjectListing listing, store.List(options.deadline, listed));
  Result<Numbering> numbering = Number(listing, options);
  if (!numbering) return Error(std::move(numbering).error().WithContext(store.name()));
  RETURN_IF_ERROR(AskForTheRest(store, listing, *numbering, options));
  std::uint64_t missing_count = 0;
  std::uint64_t unversioned_count = 0;
  std::uint64_t unreadable_count = 0;
  std::vector<std::string> missing;
  std::vector<std::string> unreadable;
  for (const std::uint32_t object : numbering->objects) {
    const ListedObject& listed_object = listing.objects[object];
    if (!listed_object.readable && unreadable_count++ < kNamed) {
      unreadable.push_back(listed_object.path);
    }
    if (const auto& info = listed_object.info) {
      if (!info->validator.known()) ++unversioned_count;
    } else if (missing_count++ < kNamed) {
      missing.push_back(listed_object.path);
    }
  }
  if (missing_count == numbering->objects.size()) {
    return Error(Code::kNotFound,
                 fmt::format("{}: none of the {} listed samples is there, {} for example: does the "
                             "listing belong to this address?",
                             store.name(), missing_count, missing.front()));
  }
  ASSIGN_OR_RETURN(const std::vector<dataset::Digest> digests,
                   ReadDigests(store, listing, *numbering, options));
  const std::uint64_t objects = listing.objects.size() + listing.unfit_keys.size();
  const std::uint64_t left_out = objects - numbering->objects.size();
  ASSIGN_OR_RETURN(Manifest manifest, Assemble(listing, *std::move(numbering), digests));
  return IndexReport{.manifest = std::move(manifest),
                     .objects = objects,
                     .left_out = left_out,
                     .order_chosen = !options.order.has_value(),
                     .missing_count = missing_count,
                     .missing = std::move(missing),
                     .unreadable_count = unreadable_count,
                     .unreadable = std::move(unreadable),
                     .unversioned_count = unversioned_count};
}

}  // namespace

std::string_view StepName(IndexProgress::Step step) {
  switch (step) {
    case IndexProgress::Step::kListing:
      return "listing";
    case IndexProgress::Step::kAsking:
      return "asking for sizes";
    case IndexProgress::Step::kArchives:
      return "looking into archives";
    case IndexProgress::Step::kIndexes:
      return "reading indexes";
    case IndexProgress::Step::kReading:
      return "reading";
  }
  return "";
}

Result<bool> ParseVerify(std::string_view name) {
  if (name == "Digest" || name == "digest") return true;
  if (name == "Checksum" || name == "checksum") return false;
  return Error(Code::kInvalidArgument,
               fmt::format("--verify {}: there are Checksum and Digest", name));
}

Result<IndexReport> BuildManifest(ObjectStore& store, const IndexOptions& options) {
  switch (options.format) {
    case dataset::Format::kFiles:
      return BuildFilesManifest(store, options);
    case dataset::Format::kTar:
    case dataset::Format::kTarFiles:
      return BuildTarManifest(store, options);
    case dataset::Format::kRanges:
    case dataset::Format::kNpy:
    case dataset::Format::kMegatron:
      return BuildRangesManifest(store, options);
  }
  return Error(Code::kInvalidArgument, "no such format");
}

}  // namespace optcache::storage
