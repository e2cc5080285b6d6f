#include "storage/verify.h"

#include <map>
#include <utility>

#include "base/mutex.h"
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
  VerifyReport Report(std::uint64_t checked) {
    const MutexLock lock(mutex_);
    VerifyReport report = {
        .checked = checked, .missing_count = missing_count_, .changed_count = changed_count_};
    for (auto& [object, text] : missing_)
      report.missing.push_back(std::move(text));
    for (auto& [object, text] : changed_)
      report.changed.push_back(std::move(text));
    return report;
  }

 private:
  using Named = std::map<std::uint32_t, std::string>;

  // Of all that come, the objects with the smallest numbers stay.
  void Keep(Named& named, std::uint32_t object, std::string text) const {
    named.emplace(object, std::move(text));
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
  const std::uint64_t all = manifest.objects();
  const std::uint64_t chosen =
      options.samples_max == 0 ? all : std::min<std::uint64_t>(options.samples_max, all);
  const auto object_at = [&](size_t i) { return static_cast<std::uint32_t>(i * all / chosen); };
  Findings findings(options.named_max);
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
    if (!status.ok()) findings.AddChanged(index, status.message());
  };
  const auto report = [&](size_t done) {
    if (options.progress) options.progress(done, chosen);
  };
  RETURN_IF_ERROR(internal::StatMany(
      store,
      {.count = chosen,
       .concurrent_max = options.concurrent_stats_max,
       .deadline = options.deadline},
      [&](size_t i) { return manifest.ObjectAt(object_at(i)).path; }, compare, report));
  return findings.Report(chosen);
}

}  // namespace optcache::storage
