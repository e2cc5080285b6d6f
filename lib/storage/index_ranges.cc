// Indexes are chosen among what is listed, read and parsed; then the objects that they name are
// looked up in the listing, or asked for, and every range is compared with its object's size.
// Invariants: a sample's number is its place in all indexes, one after the other; an object that
// several of them name is one shard; what the manifest gets lies within its object.

#include "storage/index_ranges.h"

#include <algorithm>
#include <atomic>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "dataset/glob.h"
#include "dataset/manifest_builder.h"
#include "dataset/ranges.h"
#include "storage/internal/first_error.h"
#include "storage/internal/range_index.h"
#include "storage/internal/shards.h"

namespace optcache::storage {
namespace {

using dataset::Manifest;
using dataset::Member;
using dataset::RangeIndex;
using dataset::RangeRun;

constexpr size_t kUnreadableNamed = 5;

struct RangeSource {
  std::vector<ListedObject> indexes;
  std::vector<RangeIndex> contents;                  // by index
  std::vector<std::vector<std::uint32_t>> shard_of;  // by index and its object
  std::vector<ListedObject> shards;
  std::uint64_t listed = 0;  // indexes and shards that the listing has
};

Status OfIndex(const ObjectStore& store, const ListedObject& index, Status status) {
  return std::move(status).WithContext(store.name() + ": " + index.path);
}

Result<std::vector<ListedObject>> ChooseIndexes(ObjectStore& store, const ObjectListing& listing,
                                                const IndexOptions& options) {
  const std::string usual(internal::UsualIndexes(options.format));
  if (options.include.empty() && !listing.objects.empty()) {
    ASSIGN_OR_RETURN(const dataset::GlobSet pattern, dataset::GlobSet::Compile({usual}));
    if (std::ranges::none_of(listing.objects, [&](const ListedObject& object) {
          return pattern.Matches(object.path);
        })) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{}: none of the {} objects is {}, which says what the samples are: "
                               "put it there, or name it by include",
                               store.name(), listing.objects.size(), usual));
    }
  }
  Result<std::vector<std::uint32_t>> chosen = internal::ChooseObjects(listing, options, {usual});
  if (!chosen) return Error(std::move(chosen).error().WithContext(store.name()));
  std::vector<ListedObject> indexes;
  indexes.reserve(chosen->size());
  for (const std::uint32_t object : *chosen)
    indexes.push_back(listing.objects[object]);
  RETURN_IF_ERROR(internal::AskForObjects(store, indexes, options));
  for (const ListedObject& index : indexes) {
    if (!index.info) {
      return Error(OfIndex(store, index,
                           {Code::kNotFound,
                            "is listed but not there: put it back, "
                            "or list the source again"}));
    }
  }
  return indexes;
}

// Indexes that are read as a whole are read one after the other: each may take much memory.
Status ReadIndexes(ObjectStore& store, RangeSource& source, const IndexOptions& options) {
  source.contents.resize(source.indexes.size());
  std::atomic<size_t> next = 0;
  std::atomic<std::uint64_t> done = 0;
  internal::FirstError error;
  const auto work = [&] {
    while (!error.any()) {
      const size_t i = next++;
      if (i >= source.indexes.size()) return;
      Result<RangeIndex> read =
          internal::ReadRangeIndex(store, source.indexes[i], options.format, options.deadline);
      if (!read) return error.Set(OfIndex(store, source.indexes[i], std::move(read).error()));
      source.contents[i] = *std::move(read);
      const std::uint64_t so_far = ++done;
      if (options.progress)
        options.progress(
            {.step = IndexProgress::Step::kIndexes, .done = so_far, .all = source.indexes.size()});
    }
  };
  {
    const size_t at_once = internal::AreIndexesShort(options.format)
                               ? std::max<size_t>(options.concurrent_reads_max, 1)
                               : 1;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(at_once, source.indexes.size()); ++i)
      threads.emplace_back(work);
  }
  return error.Take();
}

// Gives each object that is named one number, by its first sample.
Status NumberShards(ObjectStore& store, RangeSource& source, const ObjectListing& listing,
                    const IndexOptions& options) {
  std::unordered_map<std::string, std::uint32_t> numbers;
  for (const RangeIndex& index : source.contents) {
    std::vector<std::uint32_t>& shard_of = source.shard_of.emplace_back();
    for (const std::string& object : index.objects) {
      const auto number = static_cast<std::uint32_t>(source.shards.size());
      const auto [known, is_new] = numbers.emplace(object, number);
      if (is_new) source.shards.push_back({.path = object, .info = {}});
      shard_of.push_back(known->second);
    }
  }
  for (const ListedObject& object : listing.objects) {
    const auto shard = numbers.find(object.path);
    if (shard == numbers.end()) continue;
    source.shards[shard->second] = object;
    ++source.listed;
  }
  for (const ListedObject& index : source.indexes) {
    const auto shard = numbers.find(index.path);
    if (shard == numbers.end()) {
      ++source.listed;
    } else {
      source.shards[shard->second] = index;  // its size is known
    }
  }
  return internal::AskForObjects(store, source.shards, options);
}

// Every object is there, and every range within it.
Status CheckRanges(const ObjectStore& store, const RangeSource& source) {
  for (size_t i = 0; i < source.indexes.size(); ++i) {
    const RangeIndex& index = source.contents[i];
    for (const RangeRun& run : index.runs) {
      const ListedObject& shard = source.shards[source.shard_of[i][run.object]];
      if (!shard.info) {
        return OfIndex(store, source.indexes[i],
                       {Code::kNotFound,
                        fmt::format("{} {}: {} is not there: paths are those below the source's "
                                    "root",
                                    index.unit, run.line, shard.path)});
      }
      if (Status fits = dataset::CheckRun(index, run, shard.info->size); !fits.ok())
        return OfIndex(store, source.indexes[i], std::move(fits));
    }
  }
  return OkStatus();
}

// Programs find samples by their names.
Status CheckNamesDiffer(const ObjectStore& store, const RangeSource& source) {
  std::vector<std::string_view> names;
  for (const RangeIndex& index : source.contents)
    names.insert(names.end(), index.names.begin(), index.names.end());
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return OkStatus();
  return {Code::kInvalidArgument, fmt::format("{}: two samples have the name {}: give each its "
                                              "own, or none to any",
                                              store.name(), *twice)};
}

// What the samples hold must not change from one object to the next: training cannot see it.
Status CheckTypes(const ObjectStore& store, const RangeSource& source) {
  const RangeIndex& first = source.contents.front();
  for (size_t i = 1; i < source.contents.size(); ++i) {
    if (source.contents[i].type == first.type) continue;
    return OfIndex(
        store, source.indexes[i],
        {Code::kInvalidArgument,
         fmt::format("its samples are {}, those of {} are {}: make a Dataset of each kind, by "
                     "include",
                     source.contents[i].type, source.indexes.front().path, first.type)});
  }
  return OkStatus();
}

Result<std::uint64_t> CountSamples(const ObjectStore& store, const RangeSource& source) {
  std::uint64_t samples = 0;
  for (size_t i = 0; i < source.indexes.size(); ++i) {
    const std::uint64_t more = source.contents[i].samples();
    if (more > dataset::kRangeSamplesMax - samples) {
      return Error(OfIndex(
          store, source.indexes[i],
          {Code::kInvalidArgument,
           fmt::format("{} samples are more than the {} that a Dataset can have: make them larger, "
                       "several records each",
                       samples + more, dataset::kRangeSamplesMax)}));
    }
    samples += more;
  }
  return samples;
}

Result<Manifest> AssembleRanges(const RangeSource& source, dataset::Order order,
                                const std::vector<dataset::Digest>& digests) {
  dataset::ManifestBuilder builder(order, {}, dataset::Layout::kMembers);
  for (const ListedObject& shard : source.shards) {
    RETURN_IF_ERROR(builder.AddShard(
        {.path = shard.path, .size = shard.info->size, .validator = shard.info->validator}));
  }
  std::vector<std::uint64_t> so_far(source.shards.size());  // samples, by shard
  size_t sample = 0;
  for (size_t i = 0; i < source.indexes.size(); ++i) {
    const RangeIndex& index = source.contents[i];
    size_t in_index = 0;
    for (const RangeRun& run : index.runs) {
      const std::uint32_t shard = source.shard_of[i][run.object];
      Member member = {.name = {}, .offset = run.offset, .size = run.length};
      for (std::uint64_t k = 0; k < run.count; ++k, ++sample, ++in_index) {
        const std::uint64_t number = so_far[shard]++;
        const std::string name = index.names.empty()
                                     ? fmt::format("{}#{}", source.shards[shard].path, number)
                                     : index.names[in_index];
        RETURN_IF_ERROR(
            builder.Add({.path = name,
                         .validator = {},
                         .digest = digests.empty() ? std::nullopt : std::optional(digests[sample]),
                         .shard = shard,
                         .members = std::span<const Member>(&member, 1)}));
        member.offset += run.length;
      }
    }
  }
  return std::move(builder).Finish();
}

void NoteUnreadable(const RangeSource& source, IndexReport& report) {
  const Manifest& manifest = report.manifest;
  for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
    if (source.shards[manifest.ObjectOf(sample)].readable) continue;
    if (report.unreadable_count++ < kUnreadableNamed)
      report.unreadable.push_back(manifest.NameInSource(sample));
  }
}

}  // namespace

Result<IndexReport> BuildRangesManifest(ObjectStore& store, const IndexOptions& options) {
  const dataset::Order order = options.order.value_or(dataset::Order::kPath);
  if (order == dataset::Order::kImageFolder) {
    return Error(Code::kInvalidArgument,
                 store.name() +
                     ": order image-folder numbers files in class folders, and this "
                     "format has none: take path or list");
  }
  const auto tell = [&](std::uint64_t objects) {
    if (options.progress)
      options.progress({.step = IndexProgress::Step::kListing, .done = objects});
  };
  ASSIGN_OR_RETURN(const ObjectListing listing, store.List(options.deadline, tell));
  RangeSource source;
  ASSIGN_OR_RETURN(source.indexes, ChooseIndexes(store, listing, options));
  RETURN_IF_ERROR(ReadIndexes(store, source, options));
  RETURN_IF_ERROR(CheckTypes(store, source));
  RETURN_IF_ERROR(CheckNamesDiffer(store, source));
  ASSIGN_OR_RETURN(const std::uint64_t samples, CountSamples(store, source));
  if (samples == 0)
    return Error(Code::kInvalidArgument, store.name() + ": there is no sample in the indexes");
  RETURN_IF_ERROR(NumberShards(store, source, listing, options));
  RETURN_IF_ERROR(CheckRanges(store, source));
  ASSIGN_OR_RETURN(Manifest manifest, AssembleRanges(source, order, {}));
  if (options.digests) {
    ASSIGN_OR_RETURN(const std::vector<dataset::Digest> digests,
                     internal::DigestsOf(store, manifest, options));
    ASSIGN_OR_RETURN(manifest, AssembleRanges(source, order, digests));
  }
  const std::uint64_t objects = listing.objects.size() + listing.unfit_keys.size();
  const std::uint64_t unversioned = internal::UnversionedSamples(manifest, source.shards);
  IndexReport report{.manifest = std::move(manifest),
                     .objects = objects,
                     .left_out = objects - source.listed,
                     .unversioned_count = unversioned};
  NoteUnreadable(source, report);
  return report;
}

}  // namespace optcache::storage
