#pragma once

#include <time.h>

#include <cstdint>

namespace optcache::bench {

// Adds up the processor time that this process uses between Start and Stop: other programs on the
// machine disturb that less than the time of day.
class CpuTimer {
 public:
  void Start() { started_ = Now(); }
  void Stop() { total_ += Now() - started_; }
  // Of this process so far.
  static double Now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  double seconds() const { return total_; }
  double NanosecondsPer(std::uint64_t count) const {
    return total_ * 1e9 / static_cast<double>(count);
  }

 private:
  double started_ = 0;
  double total_ = 0;
};

}  // namespace optcache::bench
