#pragma once

// Time enters the program here and nowhere else, so that tests can hold it still.

#include <chrono>

namespace optcache {

using Duration = std::chrono::nanoseconds;
using MonotonicTime = std::chrono::steady_clock::time_point;

// For people, metrics and rates; decisions compare Durations.
constexpr double ToSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}
// `seconds` must fit: less than 2^63 ns, which are 292 years.
constexpr Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // For deadlines and durations; never jumps.
  virtual MonotonicTime Now() const = 0;
  // Seconds since 1970, for what people and other machines read.
  virtual double UnixSeconds() const = 0;
};

// The machine's clock; lives as long as the process.
const Clock& SystemClock();

// A moment by which something must have happened. A value.
class Deadline {
 public:
  static Deadline After(const Clock& clock, Duration wait) { return Deadline(clock.Now() + wait); }
  explicit Deadline(MonotonicTime at) : at_(at) {}

  MonotonicTime at() const { return at_; }
  bool Expired(MonotonicTime now) const { return now >= at_; }
  // Zero when expired.
  Duration Remaining(MonotonicTime now) const { return now >= at_ ? Duration::zero() : at_ - now; }

 private:
  MonotonicTime at_;
};

}  // namespace optcache
