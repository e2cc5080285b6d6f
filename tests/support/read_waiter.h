#pragma once

#include <chrono>
#include <optional>

#include "base/mutex.h"
#include "storage/object_store.h"

namespace optcache::storage {

// Starts one read and waits for its end; keeps count, so that a second callback shows.
class ReadWaiter {
 public:
  // What the read ended with, its refusal included. CHECKs nothing: a read that never ends shows as
  // kInternal after a minute.
  ReadOutcome Run(ObjectStore& store, ReadRequest request) {
    Start(store, std::move(request));
    return Wait();
  }
  void Start(ObjectStore& store, ReadRequest request) {
    Status accepted = store.Read(std::move(request), callback());
    if (!accepted.ok()) Finish({.status = std::move(accepted)});
  }
  ReadCallback callback() {
    return [this](ReadOutcome outcome) { Finish(std::move(outcome)); };
  }
  ReadOutcome Wait() {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    const MutexLock lock(mutex_);
    while (!outcome_) {
      if (!ended_.WaitUntil(mutex_, limit)) {
        return {.status = {Code::kInternal, "the read did not call back"}};
      }
    }
    return *outcome_;
  }
  int calls() {
    const MutexLock lock(mutex_);
    return calls_;
  }

 private:
  void Finish(ReadOutcome outcome) {
    const MutexLock lock(mutex_);
    outcome_ = std::move(outcome);
    ++calls_;
    ended_.NotifyAll();
  }

  Mutex mutex_;
  CondVar ended_;
  std::optional<ReadOutcome> outcome_ GUARDED_BY(mutex_);
  int calls_ GUARDED_BY(mutex_) = 0;
};

}  // namespace optcache::storage
