#include "net/worker_thread.h"

#include <utility>

namespace optcache::net {
namespace {

constexpr auto kLongestNap = std::chrono::seconds(1);

}  // namespace

WorkerThread::WorkerThread(EventLoop& loop, const Clock& clock, std::size_t max_waiting)
    : loop_(loop),
      clock_(clock),
      max_waiting_(max_waiting),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

WorkerThread::~WorkerThread() {
  thread_.request_stop();
  changed_.NotifyAll();
}

Status WorkerThread::Run(std::function<void()> job, std::function<void()> end) {
  const MutexLock lock(mutex_);
  if (jobs_.size() >= max_waiting_) {
    return {Code::kResourceExhausted, "busy with other requests"};
  }
  jobs_.push_back({.job = std::move(job), .end = guard_.Wrap(std::move(end))});
  changed_.NotifyOne();
  return OkStatus();
}

void WorkerThread::Work(const std::stop_token& stop) {
  while (true) {
    Job job;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !stop.stop_requested()) {
        changed_.WaitUntil(mutex_, clock_.Now() + kLongestNap);
      }
      if (stop.stop_requested()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.job();
    loop_.Post(std::move(job.end));
  }
}

}  // namespace optcache::net
