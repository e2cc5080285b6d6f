#include "storage/verify.h"

#include <map>
#include <utility>

#include "base/mutex.h"
#include "storage/internal/stat_many.h"

namespace optcache::storage {
namespace {

using dataset::Manifest;

// What was found, by sample, so that the report does not depend on who answered first. Thread-safe.
class Findings {
 public:
  explicit Findings(size_t named_max) : named_max_(named_max) {}

  void AddMissing(SampleId sample, std::string path) {
    const MutexLock lock(mutex_);
    ++missing_count_;
    Keep(missing_, sample, std::move(path));
  }
  void AddChanged(SampleId sample, std::string sentence) {
    const MutexLock lock(mutex_);
    ++changed_count_;
    Keep(changed_, sample, std::move(sentence));
  }
  VerifyReport Report(std::uint64_t checked) {
    const MutexLock lock(mutex_);
    VerifyReport report = {
        .checked = checked, .missing_count = missing_count_, .changed_count = changed_count_};
    for (auto& [sample, text] : missing_)
      report.missing.push_back(std::move(text));
    for (auto& [sample, text] : changed_)
      report.changed.push_back(std::move(text));
    return report;
  }

 private:
  using Named = std::map<SampleId, std::string>;

  // Of all that come, the samples with the smallest numbers stay.
  void Keep(Named& named, SampleId sample, std::string text) const {
    named.emplace(sample, std::move(text));
    if (named.size() > named_max_) named.erase(std::prev(named.end()));
  }

  const size_t named_max_;
  Mutex mutex_;
  std::uint64_t missing_count_ GUARDED_BY(mutex_) = 0;
  std::uint64_t changed_count_ GUARDED_BY(mutex_) = 0;
  Named missing_ GUARDED_BY(mutex_);
  Named changed_ GUARDED_BY(mutex_);
};

}  // namespace

Result<VerifyReport> VerifyManifest(ObjectStore& store, const Manifest& manifest,
                                    const VerifyOptions& options) {
  const std::uint64_t all = manifest.samples();
  const std::uint64_t chosen =
      options.samples_max == 0 ? all : std::min<std::uint64_t>(options.samples_max, all);
  const auto sample_at = [&](size_t i) { return static_cast<SampleId>(i * all / chosen); };
  Findings findings(options.named_max);
  const auto compare = [&](size_t i, Result<ObjectInfo> found) {
    const SampleId sample = sample_at(i);
    const ObjectInfo listed = {.size = manifest.Size(sample),
                               .validator = manifest.ValidatorOf(sample)};
    const bool was_missing = listed.size == 0 && !listed.validator.known();
    if (!found) {
      if (!was_missing) findings.AddMissing(sample, manifest.Path(sample));
      return;
    }
    const Status status = CheckUnchanged(manifest.Path(sample), listed, *found);
    if (!status.ok()) findings.AddChanged(sample, status.message());
  };
  const auto report = [&](size_t done) {
    if (options.progress) options.progress(done, chosen);
  };
  RETURN_IF_ERROR(internal::StatMany(
      store,
      {.count = chosen,
       .concurrent_max = options.concurrent_stats_max,
       .deadline = options.deadline},
      [&](size_t i) { return manifest.Path(sample_at(i)); }, compare, report));
  return findings.Report(chosen);
}

}  // namespace optcache::storage
