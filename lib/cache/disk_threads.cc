#include "cache/disk_threads.h"

#include <chrono>
#include <utility>

namespace optcache::cache {
namespace {

constexpr auto kLongestWait = std::chrono::seconds(1);

}  // namespace

DiskThreads::DiskThreads(const Clock& clock, const Options& options)
    : clock_(clock), options_(options) {
  for (std::size_t i = 0; i < options_.threads; ++i)
    threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
}

DiskThreads::~DiskThreads() {
  for (std::jthread& thread : threads_)
    thread.request_stop();
  changed_.NotifyAll();
}

Status DiskThreads::Add(Jobs& jobs, std::function<void()> job) {
  if (jobs.size() >= options_.max_waiting) {
    return {Code::kUnavailable, "too much waits for the disk"};
  }
  jobs.push_back(std::move(job));
  changed_.NotifyOne();
  return OkStatus();
}

Status DiskThreads::Read(std::function<void()> job) {
  const MutexLock lock(mutex_);
  return Add(reads_, std::move(job));
}

Status DiskThreads::Write(std::function<void()> job) {
  const MutexLock lock(mutex_);
  return Add(writes_, std::move(job));
}

void DiskThreads::Clean(std::function<void()> job) {
  const MutexLock lock(mutex_);
  cleans_.push_back(std::move(job));
  changed_.NotifyOne();
}

void DiskThreads::Work(const std::stop_token& stop) {
  while (true) {
    std::function<void()> job;
    bool writes = false;
    {
      MutexLock lock(mutex_);
      const auto may_write = [this]() REQUIRES(mutex_) {
        const bool any = !writes_.empty() || !cleans_.empty();
        return any && writing_ < options_.max_writing;
      };
      while (reads_.empty() && !may_write() && !stop.stop_requested()) {
        changed_.WaitUntil(mutex_, clock_.Now() + kLongestWait);
      }
      if (stop.stop_requested()) return;
      // One at least, however much is read: what arrives needs the room.
      writes = may_write() && (reads_.empty() || writing_ == 0);
      Jobs& jobs = !writes ? reads_ : !cleans_.empty() ? cleans_ : writes_;
      job = std::move(jobs.front());
      jobs.pop_front();
      writing_ += writes ? 1U : 0U;
    }
    job();
    if (!writes) continue;
    const MutexLock lock(mutex_);
    --writing_;
    changed_.NotifyOne();
  }
}

}  // namespace optcache::cache
