#pragma once

// Random reads, and how often caches hit: one policy's, and any that there could be.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {

inline std::vector<SampleId> RandomReads(std::size_t count, std::uint32_t samples, Random& random) {
  std::vector<SampleId> reads(count);
  for (SampleId& sample : reads)
    sample = static_cast<SampleId>(random.Below(samples));
  return reads;
}

inline std::uint64_t Hits(Policy& policy, const std::vector<SampleId>& reads) {
  std::uint64_t hits = 0;
  for (const SampleId sample : reads)
    hits += std::uint64_t{policy.Read(sample)};
  return hits;
}

// The most hits that any cache of `capacity` samples can have: tries every set that could be held
// after every read.
inline std::uint64_t MostHitsOfAny(const std::vector<SampleId>& reads, std::uint32_t samples,
                                   std::uint64_t capacity) {
  std::vector<int> best(1U << samples, -1);
  best[0] = 0;
  for (const SampleId sample : reads) {
    std::vector<int> after(best.size(), -1);
    for (unsigned held = 0; held < best.size(); ++held) {
      if (best[held] < 0) continue;
      const int hits = best[held] + ((held >> sample & 1U) != 0 ? 1 : 0);
      const unsigned could_hold = held | 1U << sample;
      for (unsigned kept = could_hold;; kept = (kept - 1) & could_hold) {
        if (static_cast<std::uint64_t>(std::popcount(kept)) <= capacity)
          after[kept] = std::max(after[kept], hits);
        if (kept == 0) break;
      }
    }
    best = std::move(after);
  }
  return static_cast<std::uint64_t>(*std::max_element(best.begin(), best.end()));
}

}  // namespace optcache::plan
