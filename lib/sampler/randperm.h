#pragma once

// torch.randperm on the CPU: a Fisher-Yates shuffle in one of two variants.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/stop_check.h"
#include "sampler/mt19937.h"

namespace optcache::sampler {

enum class Randperm : std::uint8_t {
  kNarrow,  // one 32-bit draw a place, from the front; every version for small n
  kWide,    // one 64-bit draw a place, growing; newer versions from kWideRandpermFrom on
};

// Where the newer versions change over: UINT32_MAX / 20. Up to there a 32-bit draw modulo n is
// biased by less than a twentieth.
inline constexpr std::uint64_t kWideRandpermFrom = 214'748'364;

// The same of torch.randint, whose draw is a word modulo n.
inline constexpr std::uint64_t kWideRandintFrom = 1ULL << 28U;

// What torch.randperm(n) does; `modern` as in Recipe::modern_randperm.
Randperm RandpermOf(std::uint64_t n, bool modern);

// Words that MakeRandperm draws.
std::uint64_t RandpermWords(std::uint64_t n, Randperm variant);

// Appends the permutation of 0 to n - 1 to `order`; n is at most kNoSample. What it does once
// `stop` says so means nothing.
void AppendRandperm(std::uint64_t n, Randperm variant, Mt19937& generator,
                    std::vector<SampleId>& order, const StopCheck& stop);

// The same in a list of its own.
std::vector<SampleId> MakeRandperm(std::uint64_t n, Randperm variant, Mt19937& generator,
                                   const StopCheck& stop = {});

}  // namespace optcache::sampler
