// Makes a manifest of tar archives: which archives, what is in them, which members make a sample.
//
//   List ─► ChooseArchives ─► AskForArchives ─► IndexTars ─► Group or Single ─► AssembleTar
//
// The idea: archives are in the order of their paths or of the list, and members in that of their
// archive, so numbers are the same on every machine. Group joins members of one key that follow one
// another to a sample. Single takes each member for a sample and numbers them all as if they were
// unpacked in one folder. Digests need the places of samples, so where they are wanted the manifest
// is assembled twice.
//
// The lists of members are given up as they are turned into samples: both may be large.

#include "storage/index_tar.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "dataset/manifest_builder.h"
#include "dataset/numbering.h"
#include "dataset/tar_groups.h"
#include "dataset/tar_idx.h"
#include "storage/internal/shards.h"
#include "storage/tar_index.h"

namespace optcache::storage {
namespace {

using dataset::Layout;
using dataset::Manifest;
using dataset::ManifestBuilder;
using dataset::Member;
using dataset::Order;
using dataset::TarFile;

// A sample before it has a number.
struct Found {
  std::string path;  // or key
  std::uint32_t shard = 0;
  std::vector<Member> members;
};

struct Samples {
  Layout layout = Layout::kGroups;
  Order order = Order::kPath;
  std::vector<std::string> classes;
  std::vector<dataset::ClassIndex> class_of;  // by sample; empty without classes
  std::vector<Found> found;                   // by sample
  std::uint64_t left_out = 0;                 // members
};

// kInvalidArgument, if there are no archives but compressed ones.
Status CheckCompressed(const ObjectListing& listing) {
  constexpr std::array<std::string_view, 6> kEndings = {".tar.gz", ".tgz",     ".tar.zst",
                                                        ".tar.xz", ".tar.bz2", ".tar.lz4"};
  std::string_view compressed;
  for (const ListedObject& object : listing.objects) {
    const std::string_view path = object.path;
    if (path.ends_with(".tar")) return OkStatus();
    if (compressed.empty() &&
        std::ranges::any_of(kEndings, [&](std::string_view end) { return path.ends_with(end); }))
      compressed = path;
  }
  if (compressed.empty()) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("none of the {} objects is a .tar archive; {} is compressed, so no part of "
                      "it can be read alone: unpack it to a plain .tar",
                      listing.objects.size(), compressed)};
}

// The archives among what is listed, in the order of their samples' numbers.
Result<std::vector<ListedObject>> ChooseArchives(ObjectListing listing,
                                                 const IndexOptions& options) {
  if (options.include.empty()) RETURN_IF_ERROR(CheckCompressed(listing));
  ASSIGN_OR_RETURN(const std::vector<std::uint32_t> chosen,
                   internal::ChooseObjects(listing, options, {"**/*.tar"}));
  std::vector<ListedObject> archives;
  archives.reserve(chosen.size());
  for (const std::uint32_t object : chosen)
    archives.push_back(std::move(listing.objects[object]));
  return archives;
}

// Those beside archives, of all that is listed.
TarIdxFiles IdxFilesIn(const ObjectListing& listing) {
  std::set<std::string> wanted;
  for (const ListedObject& object : listing.objects)
    wanted.insert(dataset::TarIdxPath(object.path));
  TarIdxFiles found;
  for (const ListedObject& object : listing.objects) {
    if (wanted.contains(object.path)) found.emplace(object.path, object);
  }
  return found;
}

Status AskForArchives(ObjectStore& store, std::vector<ListedObject>& archives,
                      const IndexOptions& options) {
  RETURN_IF_ERROR(internal::AskForObjects(store, archives, options));
  for (const ListedObject& archive : archives) {
    if (!archive.info) {
      return {Code::kNotFound,
              fmt::format("{}: {} is listed but not there: its samples would be missing. Put it "
                          "back, or list the source again",
                          store.name(), archive.path)};
    }
  }
  return OkStatus();
}

Result<Samples> Group(const std::vector<ListedObject>& archives,
                      std::vector<std::vector<TarFile>> files, const IndexOptions& options) {
  if (options.order == Order::kImageFolder) {
    return Error(Code::kInvalidArgument,
                 "order image-folder numbers files in class folders, and samples of several "
                 "members are none: take path or list, or format tar-files");
  }
  Samples samples = {.layout = Layout::kGroups, .order = options.order.value_or(Order::kPath)};
  for (std::uint32_t shard = 0; shard < files.size(); ++shard) {
    dataset::TarGrouper grouper;
    for (const TarFile& file : files[shard]) {
      if (Status added = grouper.Add(file); !added.ok())
        return Error(std::move(added).WithContext(archives[shard].path));
    }
    size_t taken = 0;
    for (dataset::TarGroup& group : std::move(grouper).Finish()) {
      taken += group.members.size();
      samples.found.push_back(
          {.path = std::move(group.key), .shard = shard, .members = std::move(group.members)});
    }
    samples.left_out += files[shard].size() - taken;
    files[shard] = {};
  }
  return samples;
}

// A member's path below the folder into which its archive would be unpacked.
std::string_view PathOf(const TarFile& file) {
  std::string_view path = file.name;
  while (path.starts_with("./") || path.starts_with('/'))
    path.remove_prefix(path.front() == '/' ? 1 : 2);
  return path;
}

// As if all archives were unpacked in one folder.
Result<Samples> Single(std::vector<std::vector<TarFile>> files, const IndexOptions& options) {
  std::vector<Found> all;
  for (std::uint32_t shard = 0; shard < files.size(); ++shard) {
    for (const TarFile& file : files[shard]) {
      if (dataset::IsTarMeta(file.name)) continue;
      all.push_back({.path = std::string(PathOf(file)),
                     .shard = shard,
                     .members = {{.name = {}, .offset = file.offset, .size = file.size}}});
    }
    files[shard] = {};
  }
  std::vector<std::string_view> paths;
  std::set<std::string_view> top_folders;
  paths.reserve(all.size());
  for (const Found& found : all) {
    paths.emplace_back(found.path);
    const size_t slash = paths.back().find('/');
    if (slash != std::string_view::npos) top_folders.insert(paths.back().substr(0, slash));
  }
  ASSIGN_OR_RETURN(dataset::Numbering numbering,
                   dataset::NumberSamples(
                       paths, std::vector<std::string>(top_folders.begin(), top_folders.end()),
                       {.order = options.order, .include = {}}));
  Samples samples = {.layout = Layout::kMembers,
                     .order = numbering.order,
                     .classes = std::move(numbering.classes),
                     .class_of = std::move(numbering.class_of),
                     .found = {},
                     .left_out = all.size() - numbering.objects.size()};
  samples.found.reserve(numbering.objects.size());
  for (const std::uint32_t at : numbering.objects)
    samples.found.push_back(std::move(all[at]));
  return samples;
}

Result<Manifest> AssembleTar(const std::vector<ListedObject>& archives, const Samples& samples,
                             const std::vector<dataset::Digest>& digests) {
  ManifestBuilder builder(samples.order, samples.classes, samples.layout);
  for (const ListedObject& archive : archives) {
    RETURN_IF_ERROR(builder.AddShard(
        {.path = archive.path, .size = archive.info->size, .validator = archive.info->validator}));
  }
  for (size_t i = 0; i < samples.found.size(); ++i) {
    const Found& found = samples.found[i];
    Status added = builder.Add(
        {.path = found.path,
         .class_index = samples.class_of.empty() ? dataset::kNoClass : samples.class_of[i],
         .validator = {},
         .digest = digests.empty() ? std::nullopt : std::optional(digests[i]),
         .shard = found.shard,
         .members = found.members});
    if (!added.ok()) return Error(std::move(added).WithContext(archives[found.shard].path));
  }
  return std::move(builder).Finish();
}

}  // namespace

Result<IndexReport> BuildTarManifest(ObjectStore& store, const IndexOptions& options) {
  const auto tell = [&](IndexProgress::Step step, std::uint64_t done, std::uint64_t all) {
    if (options.progress) options.progress({.step = step, .done = done, .all = all});
  };
  const auto of_store = [&](Status status) {
    return Error(std::move(status).WithContext(store.name()));
  };
  ASSIGN_OR_RETURN(ObjectListing listing, store.List(options.deadline, [&](std::uint64_t objects) {
    tell(IndexProgress::Step::kListing, objects, 0);
  }));
  const std::uint64_t objects = listing.objects.size() + listing.unfit_keys.size();
  TarIdxFiles idx_files = IdxFilesIn(listing);
  Result<std::vector<ListedObject>> archives = ChooseArchives(std::move(listing), options);
  if (!archives) return of_store(std::move(archives).error());
  RETURN_IF_ERROR(AskForArchives(store, *archives, options));
  ASSIGN_OR_RETURN(TarContents contents,
                   IndexTars(store, *archives,
                             {.idx_files = std::move(idx_files),
                              .concurrent_max = options.concurrent_reads_max,
                              .deadline = options.deadline,
                              .progress = [&](std::uint64_t done, std::uint64_t all) {
                                tell(IndexProgress::Step::kArchives, done, all);
                              }}));
  Result<Samples> samples = options.format == dataset::Format::kTar
                                ? Group(*archives, std::move(contents.files), options)
                                : Single(std::move(contents.files), options);
  if (!samples) return of_store(std::move(samples).error());
  if (samples->found.empty()) {
    return of_store({Code::kInvalidArgument,
                     fmt::format("there is no sample in {} archive(s): their files should be named "
                                 "KEY.ENDING, as 0001.jpg and 0001.cls",
                                 archives->size())});
  }
  ASSIGN_OR_RETURN(Manifest manifest, AssembleTar(*archives, *samples, {}));
  if (options.digests) {
    ASSIGN_OR_RETURN(const std::vector<dataset::Digest> digests,
                     internal::DigestsOf(store, manifest, options));
    ASSIGN_OR_RETURN(manifest, AssembleTar(*archives, *samples, digests));
  }
  const std::uint64_t unversioned = internal::UnversionedSamples(manifest, *archives);
  return IndexReport{
      .manifest = std::move(manifest),
      .objects = objects,
      .left_out = objects - archives->size() + samples->left_out,
      .order_chosen = options.format == dataset::Format::kTarFiles && !options.order.has_value(),
      .unfit_idx_files = std::move(contents.unfit_idx_files),
      .unended = std::move(contents.unended),
      .unversioned_count = unversioned};
}

}  // namespace optcache::storage
