#pragma once

// What an operator looks for when samples cannot be read: which object, and why.

#include <map>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log_limit.h"
#include "base/mutex.h"
#include "base/status.h"

namespace optcache::storage {

struct FailedRead {
  const std::string& store;
  const std::string& object;
  ByteCount begin = 0;  // of the bytes that were asked for, which may be none
  ByteCount end = 0;
  unsigned attempt = 1;
  const Status& status;
};

// Writes a line for a read that failed, and for each code at most one a second: it says how many it
// stands for. What a shutdown cancels is no failure. Thread-safe.
class FailedReadLog {
 public:
  explicit FailedReadLog(const Clock& clock) : clock_(clock) {}

  void Tell(const FailedRead& read);

 private:
  const Clock& clock_;
  Mutex mutex_;
  std::map<Code, LogLimit> limits_ GUARDED_BY(mutex_);
};

}  // namespace optcache::storage
