#pragma once

// The baselines that `optcache simulate` compares the plan with: one cache under one policy, read
// after read. All count bytes; a sample that is larger than the whole cache is never held.

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "plan/sizes.h"

namespace optcache::plan {

// Not thread-safe: one owner. What is held never exceeds the capacity between reads.
class Policy {
 public:
  virtual ~Policy() = default;
  // The next read, of `sample`: whether it was held. Afterwards it may be.
  virtual bool Read(SampleId sample) = 0;
  virtual bool Holds(SampleId sample) const = 0;
};

// The cache that a policy manages.
struct Room {
  Sizes sizes;
  ByteCount capacity = 0;
};

// Keep nothing.
std::unique_ptr<Policy> MakeNone();
// Keep what comes until full, never evict (MinIO in CoorDL).
std::unique_ptr<Policy> MakePin(Room room);
// Evict a sample chosen by chance (RR).
std::unique_ptr<Policy> MakeRandom(Room room, std::uint64_t seed);

// Evict what came first; what was used least recently; what SIEVE's hand finds unused (Zhang et
// al., NSDI '24).
std::unique_ptr<Policy> MakeFifo(Room room);
std::unique_ptr<Policy> MakeLru(Room room);
std::unique_ptr<Policy> MakeSieve(Room room);

// Evict what was used least often, of those the least recent. Uses are counted while a sample is
// held, or for ever.
enum class Counting { kWhileHeld, kForEver };
std::unique_ptr<Policy> MakeLfu(Room room, Counting counting);

// What the policies below know: all reads that will come, and by read the next one of the same
// sample.
inline constexpr std::uint32_t kNoRead = std::numeric_limits<std::uint32_t>::max();
struct Future {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> next;
};
Future FutureOf(std::vector<SampleId> samples, std::uint32_t sample_count);

// Belady's MIN by the textbook: evict what is used last. `future` must outlive the policy.
enum class Admission {
  kBypass,  // unless the sample that came is itself used last
  kForced,  // what came is always held, as in a demand-paged memory
};
struct MinOptions {
  Admission admission = Admission::kBypass;
  // How many reads ahead are known. Samples whose next read is not known are evicted first, the
  // least recently used first of all, and never take another's place by bypass.
  std::uint32_t lookahead = kNoRead;
};
std::unique_ptr<Policy> MakeMin(Room room, const Future& future, MinOptions options = {});

}  // namespace optcache::plan
