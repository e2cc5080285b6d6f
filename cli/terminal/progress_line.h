#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace optcache::cli {

// One line on standard error that says how far a long step has come, drawn over at most ten times a
// second and wiped at the end. Draws nothing unless standard error is a terminal. Thread-safe.
class ProgressLine {
 public:
  // `unit` is what is counted.
  explicit ProgressLine(std::string_view unit = "objects", const Clock& clock = SystemClock());
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // "listing: 12000 objects", or "asking: 300 of 12000" where `all` is known (not 0).
  void Show(std::string_view step, std::uint64_t done, std::uint64_t all);

 private:
  const std::string unit_;
  const Clock& clock_;
  const bool is_terminal_;
  Mutex mutex_;
  MonotonicTime next_ GUARDED_BY(mutex_);
  bool drawn_ GUARDED_BY(mutex_) = false;
};

}  // namespace optcache::cli
