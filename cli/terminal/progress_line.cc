#include "cli/terminal/progress_line.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

constexpr Duration kBetweenDrawings = std::chrono::milliseconds(100);
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(std::string_view unit, const Clock& clock)
    : unit_(unit), clock_(clock), is_terminal_(::isatty(STDERR_FILENO) == 1), next_(clock.Now()) {}

ProgressLine::~ProgressLine() {
  const MutexLock lock(mutex_);
  if (drawn_) fmt::print(stderr, "{}", kWipe);
}

void ProgressLine::Show(std::string_view step, std::uint64_t done, std::uint64_t all) {
  if (!is_terminal_) return;
  const MutexLock lock(mutex_);
  const MonotonicTime now = clock_.Now();
  if (now < next_) return;
  next_ = now + kBetweenDrawings;
  drawn_ = true;
  const std::string amount = all > 0 ? fmt::format("{} of {}", done, all) : fmt::format("{}", done);
  fmt::print(stderr, "{}{}: {} {}", kWipe, step, amount, unit_);
  std::fflush(stderr);
}

}  // namespace optcache::cli
