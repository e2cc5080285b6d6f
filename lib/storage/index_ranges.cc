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

#include "base/utf8.h"
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
constexpr size_t kTypeShown = 200;  // bytes, in a message

struct RangeSource {
  std::vector<ListedObject> indexes;
  std::vector<RangeIndex> contents;                  // by index
  std::vector<std::vector<std::uint32_t>> shard_of;  // by index and its object
  std::vector<ListedObject> shards;
  std::string type;           // of what all samples hold, if the indexes tell
  std::uint64_t samples = 0;  // of all indexes
  std::uint64_t listed = 0;   // indexes and shards that the listing has
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

// How far the threads have come that read indexes.
struct IndexReading {
  std::atomic<size_t> next = 1;  // the first one is read before all others
  std::atomic<std::uint64_t> done = 0;
  std::atomic<std::uint64_t> samples = 0;
};

// What the samples hold must not change from one object to the next: training cannot see it.
Status CheckType(const RangeSource& source, const RangeIndex& index) {
  if (index.type == source.type) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("its samples are {}, those of {} are {}: make a Dataset of each kind, by "
                      "include",
                      CutText(index.type, kTypeShown), source.indexes.front().path,
                      CutText(source.type, kTypeShown))};
}

// Before the next index is read, so that what is in memory is bounded.
Status CountSamples(const RangeIndex& index, IndexReading& reading) {
  std::uint64_t samples = index.samples();
  if (samples <= dataset::kRangeSamplesMax) {
    // Not the sum of both: g++ 12 takes twice what fetch_add returns for it.
    const std::uint64_t before = reading.samples.fetch_add(samples);
    if (before <= dataset::kRangeSamplesMax - samples) return OkStatus();
    samples = reading.samples;
  }
  return {Code::kInvalidArgument,
          fmt::format("{} samples are more than the {} that a Dataset can have: make them larger, "
                      "several records each",
                      samples, dataset::kRangeSamplesMax)};
}

Status ReadOneIndex(ObjectStore& store, RangeSource& source, size_t i, const IndexOptions& options,
                    IndexReading& reading) {
  ASSIGN_OR_RETURN(RangeIndex index, internal::ReadRangeIndex(store, source.indexes[i],
                                                              options.format, options.deadline));
  if (i == 0) source.type = index.type;
  RETURN_IF_ERROR(CheckType(source, index));
  RETURN_IF_ERROR(CountSamples(index, reading));
  index.type.clear();  // a type may be long, and is the same in each
  source.contents[i] = std::move(index);
  const std::uint64_t done = ++reading.done;
  if (options.progress)
    options.progress(
        {.step = IndexProgress::Step::kIndexes, .done = done, .all = source.indexes.size()});
  return OkStatus();
}

// Indexes that are read as a whole are read one after the other: each may take much memory.
Status ReadIndexes(ObjectStore& store, RangeSource& source, const IndexOptions& options) {
  source.contents.resize(source.indexes.size());
  IndexReading reading;
  internal::FirstError error;
  const auto read = [&](size_t i) {
    Status status = ReadOneIndex(store, source, i, options, reading);
    if (!status.ok()) error.Set(OfIndex(store, source.indexes[i], std::move(status)));
  };
  const auto work = [&] {
    while (!error.any()) {
      const size_t i = reading.next++;
      if (i >= source.indexes.size()) return;
      read(i);
    }
  };
  read(0);
  {
    const size_t at_once = internal::AreIndexesShort(options.format)
                               ? std::max<size_t>(options.concurrent_reads_max, 1)
                               : 1;
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < std::min(at_once, source.indexes.size() - 1); ++i)
      threads.emplace_back(work);
  }
  source.samples = reading.samples;
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

// Programs find samples by their names. A name of a list might be the OBJECT#N of another one.
Status CheckNames(const ObjectStore& store, const RangeSource& source) {
  std::vector<std::string_view> names;
  const bool named = !source.contents.front().names.empty();
  for (size_t i = 0; i < source.contents.size(); ++i) {
    const RangeIndex& index = source.contents[i];
    if (index.names.empty() == named) {
      return OfIndex(store, source.indexes[i],
                     {Code::kInvalidArgument,
                      fmt::format("its samples have {}, those of {} have {}: name all samples, or "
                                  "none",
                                  named ? "no names" : "names", source.indexes.front().path,
                                  named ? "names" : "none")});
    }
    names.insert(names.end(), index.names.begin(), index.names.end());
  }
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return OkStatus();
  return {Code::kInvalidArgument, fmt::format("{}: two samples have the name {}: give each its "
                                              "own, or none to any",
                                              store.name(), *twice)};
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
  RETURN_IF_ERROR(CheckNames(store, source));
  if (source.samples == 0)
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
