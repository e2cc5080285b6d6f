#pragma once

// How far a warm-up is, as people see it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"

namespace optcache::cli {

// Of one process or of all together.
struct WarmProgress {
  std::uint64_t samples = 0;  // that have ended, however
  std::uint64_t total_samples = 0;
  ByteCount total_bytes = 0;
  std::uint64_t held = 0;
  ByteCount held_bytes = 0;
  std::uint64_t read = 0;
  ByteCount read_bytes = 0;
  std::uint64_t no_room = 0;
  std::uint64_t failed = 0;
  std::string first_failure;  // of one of them; empty: not told

  ByteCount bytes() const { return held_bytes + read_bytes; }
  friend bool operator==(const WarmProgress&, const WarmProgress&) = default;
};

// A line of `optcache-sidecar warm --progress`. What is no such line counts as nothing.
WarmProgress ParseWarmProgress(std::string_view line);
WarmProgress SumOf(const std::vector<WarmProgress>& parts);

// "[######--------------]  30 %" of a share from 0 to 1.
std::string WarmBar(double share);
// "images  [######--------------]  30 %  1.5 GiB of 5 GiB  120 MiB/s  30 s left"; without a rate
// while none is known.
std::string WarmLine(const std::string& name, const WarmProgress& progress,
                     double bytes_per_second);
// What came of it, as a sentence.
std::string WarmSummary(const std::string& name, const WarmProgress& progress, Duration took);
std::string WarmAsJson(const std::string& name, const WarmProgress& progress, Duration took);

}  // namespace optcache::cli
