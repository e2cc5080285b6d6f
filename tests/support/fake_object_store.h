#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "dataset/manifest.h"
#include "storage/object_store.h"

namespace optcache::storage {

// Objects in memory. By default a read waits until the test says how it ends; nothing runs on a
// thread of its own, so callbacks run inside CompleteNext, CompleteAll or, with
// set_completes_at_once, inside Read. Thread-safe.
class FakeObjectStore final : public ObjectStore {
 public:
  explicit FakeObjectStore(std::string name = "fake://") : name_(std::move(name)) {}
  ~FakeObjectStore() override { Shutdown(); }

  void Put(const std::string& path, std::string content, dataset::Validator validator = {}) {
    const MutexLock lock(mutex_);
    objects_[path] = {std::move(content), std::move(validator)};
  }
  void Remove(const std::string& path) {
    const MutexLock lock(mutex_);
    objects_.erase(path);
  }
  // The next reads of `path` end so, one after the other, instead of being answered.
  void FailNext(const std::string& path, ReadOutcome outcome) {
    const MutexLock lock(mutex_);
    scripted_[path].push_back(std::move(outcome));
  }
  // The next read of `path` finds this content instead, under the same validator. It is as long.
  void DamageNext(const std::string& path, std::string content) {
    const MutexLock lock(mutex_);
    damaged_[path].push_back(std::move(content));
  }
  void set_completes_at_once(bool at_once) {
    const MutexLock lock(mutex_);
    at_once_ = at_once;
  }
  // Reads beyond this are refused with kResourceExhausted.
  void set_waiting_reads_max(size_t limit) {
    const MutexLock lock(mutex_);
    waiting_max_ = limit;
  }

  // Ends the oldest waiting read; false if there is none.
  bool CompleteNext() {
    return CompleteChosen([](const auto& waiting) { return waiting.begin(); });
  }
  // Ends the newest waiting read; false if there is none.
  bool CompleteNewest() {
    return CompleteChosen(
        [](auto& waiting) { return waiting.empty() ? waiting.end() : std::prev(waiting.end()); });
  }
  // Ends the oldest waiting read of `path`; false if there is none.
  bool Complete(const std::string& path) {
    return CompleteChosen([&](const auto& waiting) {
      return std::ranges::find(waiting, path, [](const Waiting& w) { return w.request.object; });
    });
  }
  void CompleteAll() {
    while (CompleteNext()) {
    }
  }

  // Paths of the waiting reads, oldest first.
  std::vector<std::string> waiting() const {
    const MutexLock lock(mutex_);
    std::vector<std::string> paths;
    for (const Waiting& w : waiting_)
      paths.push_back(w.request.object);
    return paths;
  }
  // Reads accepted so far.
  size_t reads() const {
    const MutexLock lock(mutex_);
    return reads_;
  }
  // Bytes of the largest of them.
  ByteCount largest_read() const {
    const MutexLock lock(mutex_);
    return largest_read_;
  }
  // The deadline of the read that was accepted last.
  Deadline last_deadline() const {
    const MutexLock lock(mutex_);
    return last_deadline_;
  }

  Duration last_silence_max() const {
    const MutexLock lock(mutex_);
    return last_silence_max_;
  }

  // Reads that were to be answered past caches.
  size_t fresh_reads() const {
    const MutexLock lock(mutex_);
    return fresh_reads_;
  }
  // Reads of what the caller keeps.
  size_t kept_reads() const {
    const MutexLock lock(mutex_);
    return kept_reads_;
  }

  const std::string& name() const override { return name_; }

  Status Read(ReadRequest request, ReadCallback done) override {
    RETURN_IF_ERROR(CheckReadRequest(request));
    bool at_once = false;
    {
      const MutexLock lock(mutex_);
      if (shut_down_) return {Code::kCancelled, name_ + ": shut down"};
      if (waiting_.size() >= waiting_max_) return {Code::kResourceExhausted, name_ + ": full"};
      ++reads_;
      if (request.fresh) ++fresh_reads_;
      if (request.kept) ++kept_reads_;
      largest_read_ = std::max<ByteCount>(largest_read_, request.destination.size());
      last_deadline_ = request.deadline;
      last_silence_max_ = request.silence_max;
      waiting_.push_back({std::move(request), std::move(done)});
      at_once = at_once_;
    }
    if (at_once) CompleteAll();
    return OkStatus();
  }

  Result<ObjectInfo> Stat(const std::string& object, Deadline /*deadline*/) override {
    const MutexLock lock(mutex_);
    const auto found = objects_.find(object);
    if (found == objects_.end()) return Error(Code::kNotFound, object);
    return found->second.info();
  }

  Result<ObjectListing> List(Deadline /*deadline*/, const ListProgress& /*progress*/) override {
    const MutexLock lock(mutex_);
    ObjectListing listing;
    for (const auto& [path, object] : objects_) {
      if (!dataset::CheckObjectPath(path).ok()) {
        listing.unfit_keys.push_back(path);
        continue;
      }
      listing.objects.push_back({path, object.info()});
      const size_t slash = path.find('/');
      if (slash == std::string::npos) continue;
      if (std::string folder = path.substr(0, slash);
          listing.top_folders.empty() || listing.top_folders.back() != folder) {
        listing.top_folders.push_back(std::move(folder));
      }
    }
    return listing;
  }

  void Shutdown() override {
    std::deque<Waiting> cancelled;
    {
      const MutexLock lock(mutex_);
      shut_down_ = true;
      cancelled.swap(waiting_);
    }
    for (Waiting& w : cancelled)
      w.done({.status = {Code::kCancelled, name_ + ": shut down"}});
  }

  void VisitCounters(const CounterVisitor& /*visit*/) const override {}

 private:
  struct Object {
    std::string content;
    dataset::Validator validator;
    ObjectInfo info() const { return {.size = content.size(), .validator = validator}; }
  };
  struct Waiting {
    ReadRequest request;
    ReadCallback done;
  };

  template <typename Choose>
  bool CompleteChosen(Choose choose) {
    std::deque<Waiting> chosen;
    ReadOutcome outcome;
    {
      const MutexLock lock(mutex_);
      const auto at = choose(waiting_);
      if (at == waiting_.end()) return false;
      const auto index = at - waiting_.begin();
      chosen.push_back(std::move(waiting_[static_cast<size_t>(index)]));
      waiting_.erase(waiting_.begin() + index);
      outcome = Answer(chosen.front().request);
    }
    chosen.front().done(std::move(outcome));
    return true;
  }

  ReadOutcome Answer(const ReadRequest& request) REQUIRES(mutex_) {
    if (auto& script = scripted_[request.object]; !script.empty()) {
      ReadOutcome outcome = std::move(script.front());
      script.pop_front();
      if (!outcome.status.ok()) return outcome;
    }
    const auto found = objects_.find(request.object);
    if (found == objects_.end()) return {.status = {Code::kNotFound, request.object}};
    if (Status status = CheckUnchanged(Describe(request), request.listed(), found->second.info());
        !status.ok()) {
      return {.status = std::move(status)};
    }
    std::string content = found->second.content;
    if (auto& damaged = damaged_[request.object]; !damaged.empty()) {
      content = std::move(damaged.front());
      damaged.pop_front();
    }
    DestinationWriter writer(request.destination);
    if (!writer.Write(AsBytes(content).subspan(request.offset, request.destination.size()))) {
      return {.status = {Code::kDataLoss, "writing was stopped"}};
    }
    return {};
  }

  const std::string name_;
  mutable Mutex mutex_;
  std::map<std::string, Object> objects_ GUARDED_BY(mutex_);
  std::map<std::string, std::deque<ReadOutcome>> scripted_ GUARDED_BY(mutex_);
  std::map<std::string, std::deque<std::string>> damaged_ GUARDED_BY(mutex_);
  std::deque<Waiting> waiting_ GUARDED_BY(mutex_);
  size_t waiting_max_ GUARDED_BY(mutex_) = 1 << 20;
  size_t reads_ GUARDED_BY(mutex_) = 0;
  size_t fresh_reads_ GUARDED_BY(mutex_) = 0;
  size_t kept_reads_ GUARDED_BY(mutex_) = 0;
  ByteCount largest_read_ GUARDED_BY(mutex_) = 0;
  Deadline last_deadline_ GUARDED_BY(mutex_) = Deadline(MonotonicTime());
  Duration last_silence_max_ GUARDED_BY(mutex_) = Duration::zero();
  bool at_once_ GUARDED_BY(mutex_) = false;
  bool shut_down_ GUARDED_BY(mutex_) = false;
};

}  // namespace optcache::storage
