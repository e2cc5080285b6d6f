#pragma once

// Where planning threads end. To wait for one takes parts of a second where a dataset has millions
// of samples: too long for the event loop, which serves others meanwhile.

#include <deque>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "cache-node/planning/plan_deriver.h"

namespace optcache::node {

// Thread-safe. The destructor waits until all that it took have ended.
class DeriverEnds {
 public:
  DeriverEnds();
  ~DeriverEnds();
  DeriverEnds(const DeriverEnds&) = delete;
  DeriverEnds& operator=(const DeriverEnds&) = delete;

  // Stops it, and destroys it on a thread of this object's. Does not wait.
  void Take(std::unique_ptr<PlanDeriver> deriver);

 private:
  void Run(const std::stop_token& stop);

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<PlanDeriver>> ending_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace optcache::node
