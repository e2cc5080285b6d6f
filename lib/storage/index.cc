#include "storage/index.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"
#include "dataset/manifest_builder.h"
#include "dataset/numbering.h"

namespace optcache::storage {
namespace {

using dataset::Manifest;
using dataset::ManifestBuilder;
using dataset::Numbering;

constexpr size_t kMissingNamed = 5;
constexpr std::uint64_t kProgressStep = 1000;

// Asks the store for the info of objects, several at a time. Thread-safe within one Run.
class StatRun {
 public:
  StatRun(ObjectStore& store, const IndexOptions& options, std::vector<ListedObject*> objects)
      : store_(store), options_(options), objects_(std::move(objects)) {}

  // Fills in what is there; the first error other than a missing object ends it.
  Status Run() {
    {
      std::vector<std::jthread> threads;
      const size_t count = std::min<size_t>(options_.concurrent_stats_max, objects_.size());
      for (size_t i = 0; i < count; ++i)
        threads.emplace_back([this] { Work(); });
    }
    const MutexLock lock(mutex_);
    return status_;
  }

 private:
  void Work() {
    while (!failed_) {
      const size_t index = next_++;
      if (index >= objects_.size()) return;
      Result<ObjectInfo> info = store_.Stat(objects_[index]->path, options_.deadline);
      if (info) {
        objects_[index]->info = *std::move(info);
      } else if (info.error().code() != Code::kNotFound) {
        Fail(std::move(info).error());
      }
      Report(index + 1);
    }
  }
  void Fail(Status status) {
    failed_ = true;
    const MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  void Report(size_t done) {
    if (!options_.progress || (done % kProgressStep != 0 && done != objects_.size())) return;
    options_.progress({.step = IndexProgress::Step::kAsking, .done = done, .all = objects_.size()});
  }

  ObjectStore& store_;
  const IndexOptions& options_;
  const std::vector<ListedObject*> objects_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  Mutex mutex_;
  Status status_ GUARDED_BY(mutex_);
};

Result<Numbering> Number(const ObjectListing& listing, const IndexOptions& options) {
  ASSIGN_OR_RETURN(dataset::GlobSet include, dataset::GlobSet::Compile(options.include));
  std::vector<std::string_view> paths;
  paths.reserve(listing.objects.size());
  for (const ListedObject& object : listing.objects)
    paths.emplace_back(object.path);
  return dataset::NumberSamples(paths, listing.top_folders,
                                {.order = options.order, .include = std::move(include)});
}

Status AskForTheRest(ObjectStore& store, ObjectListing& listing, const Numbering& numbering,
                     const IndexOptions& options) {
  std::vector<ListedObject*> unknown;
  for (const std::uint32_t object : numbering.objects) {
    if (!listing.objects[object].info) unknown.push_back(&listing.objects[object]);
  }
  return StatRun(store, options, std::move(unknown)).Run();
}

Result<Manifest> Assemble(const ObjectListing& listing, Numbering numbering) {
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
                     .digest = std::nullopt}));
  }
  return std::move(builder).Finish();
}

}  // namespace

Result<IndexReport> BuildManifest(ObjectStore& store, const IndexOptions& options) {
  const auto listed = [&](std::uint64_t objects) {
    if (options.progress)
      options.progress({.step = IndexProgress::Step::kListing, .done = objects});
  };
  ASSIGN_OR_RETURN(ObjectListing listing, store.List(options.deadline, listed));
  Result<Numbering> numbering = Number(listing, options);
  if (!numbering) return Error(std::move(numbering).error().WithContext(store.name()));
  RETURN_IF_ERROR(AskForTheRest(store, listing, *numbering, options));
  std::uint64_t missing_count = 0;
  std::vector<std::string> missing;
  for (const std::uint32_t object : numbering->objects) {
    if (listing.objects[object].info) continue;
    if (missing_count++ < kMissingNamed) missing.push_back(listing.objects[object].path);
  }
  if (missing_count == numbering->objects.size()) {
    return Error(Code::kNotFound,
                 fmt::format("{}: none of the {} listed samples is there, {} for example: does the "
                             "listing belong to this address?",
                             store.name(), missing_count, missing.front()));
  }
  ASSIGN_OR_RETURN(Manifest manifest, Assemble(listing, *std::move(numbering)));
  return IndexReport{.manifest = std::move(manifest),
                     .objects = listing.objects.size(),
                     .missing_count = missing_count,
                     .missing = std::move(missing)};
}

}  // namespace optcache::storage
