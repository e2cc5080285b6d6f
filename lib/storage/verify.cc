// Two passes: what the store says of each object is compared with the manifest; then, if wanted,
// the samples of the objects that passed are read and their digests compared. Invariant: the report
// does not depend on the order in which answers come.

#include "storage/verify.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/mutex.h"
#include "storage/internal/digest_many.h"
#include "storage/internal/stat_many.h"

namespace optcache::storage {
namespace {

using dataset::Manifest;

// What was found, by object, so that the report does not depend on who answered first. Thread-safe.
class Findings {
 public:
  explicit Findings(size_t named_max) : named_max_(named_max) {}

  void AddMissing(std::uint32_t object, std::string path) {
    const MutexLock lock(mutex_);
    ++missing_count_;
    Keep(missing_, object, std::move(path));
  }
  void AddChanged(std::uint32_t object, std::string sentence) {
    const MutexLock lock(mutex_);
    ++changed_count_;
    Keep(changed_, object, std::move(sentence));
  }
  void AddDamaged(SampleId sample, std::string name) {
    const MutexLock lock(mutex_);
    ++damaged_count_;
    Keep(damaged_, sample, std::move(name));
  }
  VerifyReport Report(std::uint64_t checked) {
    const MutexLock lock(mutex_);
    VerifyReport report = {.checked = checked,
                           .missing_count = missing_count_,
                           .changed_count = changed_count_,
                           .damaged_count = damaged_count_};
    for (auto& [object, text] : missing_)
      report.missing.push_back(std::move(text));
    for (auto& [object, text] : changed_)
      report.changed.push_back(std::move(text));
    for (auto& [sample, text] : damaged_)
      report.damaged.push_back(std::move(text));
    return report;
  }

 private:
  using Named = std::map<std::uint32_t, std::string>;

  // Of all that come, the objects or samples with the smallest numbers stay.
  void Keep(Named& named, std::uint32_t number, std::string text) const {
    named.emplace(number, std::move(text));
    if (named.size() > named_max_) named.erase(std::prev(named.end()));
  }

  const size_t named_max_;
  Mutex mutex_;
  std::uint64_t missing_count_ GUARDED_BY(mutex_) = 0;
  std::uint64_t changed_count_ GUARDED_BY(mutex_) = 0;
  std::uint64_t damaged_count_ GUARDED_BY(mutex_) = 0;
  Named missing_ GUARDED_BY(mutex_);
  Named changed_ GUARDED_BY(mutex_);
  Named damaged_ GUARDED_BY(mutex_);
};

// Compares objects with what the store says of them. By object, whether it is there and unchanged:
// bytes, since threads write those of different objects at once.
Result<std::vector<std::uint8_t>> CompareObjects(ObjectStore& store, const Manifest& manifest,
                                                 std::uint64_t chosen, const VerifyOptions& options,
                                                 Findings& findings) {
  const std::uint64_t all = manifest.objects();
  std::vector<std::uint8_t> unchanged(all, 0);
  const auto object_at = [&](size_t i) { return static_cast<std::uint32_t>(i * all / chosen); };
  const auto compare = [&](size_t i, Result<ObjectInfo> found) {
    const std::uint32_t index = object_at(i);
    const dataset::Object object = manifest.ObjectAt(index);
    const ObjectInfo listed = {.size = object.size, .validator = object.validator};
    const bool was_missing = listed.size == 0 && !listed.validator.known();
    if (!found) {
      if (!was_missing) findings.AddMissing(index, object.path);
      return;
    }
    const Status status = CheckUnchanged(object.path, listed, *found);
    if (!status.ok()) return findings.AddChanged(index, status.message());
    unchanged[index] = 1;
  };
  const auto report = [&](size_t done) {
    if (options.progress) options.progress("checking", done, chosen);
  };
  RETURN_IF_ERROR(internal::StatMany(
      store,
      {.count = chosen,
       .concurrent_max = options.concurrent_stats_max,
       .deadline = options.deadline},
      [&](size_t i) { return manifest.ObjectAt(object_at(i)).path; }, compare, report));
  return unchanged;
}

// Reads and compares `samples`. Objects that go or change meanwhile count as if that had been seen
// before.
Status CompareBytes(ObjectStore& store, const Manifest& manifest,
                    const std::vector<SampleId>& samples, const VerifyOptions& options,
                    Findings& findings) {
  const auto take = [&](size_t i, const Result<bool>& same) {
    const SampleId sample = samples[i];
    const std::uint32_t object = manifest.ObjectOf(sample);
    if (same) {
      if (!*same) findings.AddDamaged(sample, manifest.NameInSource(sample));
    } else if (same.error().code() == Code::kNotFound) {
      findings.AddMissing(object, manifest.ObjectAt(object).path);
    } else {
      findings.AddChanged(object, same.error().message());
    }
  };
  const auto report = [&](size_t done) {
    if (options.progress) options.progress("reading", done, samples.size());
  };
  return internal::CompareSamples(
      store, manifest, samples,
      {.concurrent_max = options.concurrent_reads_max, .deadline = options.deadline}, take, report);
}

}  // namespace

Result<VerifyReport> VerifyManifest(ObjectStore& store, const Manifest& manifest,
                                    const VerifyOptions& options) {
  if (options.bytes && !manifest.has_digests()) {
    return Error(
        Code::kInvalidArgument,
        "the manifest has no digests to compare bytes with: build it by `optcache manifest "
        "build --verify Digest`, which reads all of them once");
  }
  const std::uint64_t all = manifest.objects();
  const std::uint64_t chosen =
      options.samples_max == 0 ? all : std::min<std::uint64_t>(options.samples_max, all);
  Findings findings(options.named_max);
  ASSIGN_OR_RETURN(const std::vector<std::uint8_t> unchanged,
                   CompareObjects(store, manifest, chosen, options, findings));
  if (!options.bytes) return findings.Report(chosen);
  std::vector<SampleId> samples;
  for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
    if (unchanged[manifest.ObjectOf(sample)] != 0) samples.push_back(sample);
  }
  RETURN_IF_ERROR(CompareBytes(store, manifest, samples, options, findings));
  VerifyReport report = findings.Report(chosen);
  report.compared = samples.size();
  return report;
}

}  // namespace optcache::storage
