#pragma once

// What one asks for when headspace is to be measured, and its text: the annotation
// optcache.io/headspace and the option --headspace of the sidecar.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache::headspace {

inline constexpr std::uint32_t kStepsMin = 20;
inline constexpr std::uint32_t kStepsMax = 1'000'000;
inline constexpr std::uint64_t kRunStepsMax = 1'000'000'000'000;

// All in steps of one rank: a step is one request of its loader, usually a batch.
struct Options {
  std::uint32_t warmup_steps = 50;  // left out
  std::uint32_t steps = 200;        // measured while samples come as always
  std::uint32_t free_steps = 200;   // measured while samples are there at once
  std::uint64_t run_steps = 0;      // of the whole run; 0: what the loader announces
  friend bool operator==(const Options&, const Options&) = default;
};

// "true", or some of "steps=200,free-steps=200,warmup-steps=50,run-steps=90000". The error says
// what is wrong and what may stand there.
Result<Options> ParseOptions(std::string_view text);

// The text that gives these options.
std::string FormatOptions(const Options& options);

}  // namespace optcache::headspace
