#include "cache-node/planning/deriver_ends.h"

#include <chrono>
#include <utility>

#include "base/clock.h"

namespace optcache::node {
namespace {

constexpr auto kEndsNap = std::chrono::seconds(1);  // bounds every wait

}  // namespace

DeriverEnds::DeriverEnds() : thread_([this](const std::stop_token& stop) { Run(stop); }) {}

DeriverEnds::~DeriverEnds() {
  thread_.request_stop();
  changed_.NotifyAll();
}

void DeriverEnds::Take(std::unique_ptr<PlanDeriver> deriver) {
  deriver->Stop();
  const MutexLock lock(mutex_);
  ending_.push_back(std::move(deriver));
  changed_.NotifyOne();
}

void DeriverEnds::Run(const std::stop_token& stop) {
  while (true) {
    std::unique_ptr<PlanDeriver> next;
    {
      const MutexLock lock(mutex_);
      while (ending_.empty() && !stop.stop_requested())
        changed_.WaitUntil(mutex_, SystemClock().Now() + kEndsNap);
      if (ending_.empty()) return;
      next = std::move(ending_.front());
      ending_.pop_front();
    }
  }
}

}  // namespace optcache::node
