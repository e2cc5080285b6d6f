#pragma once

// An explicit, seeded source of random numbers for jitter, tests and simulation. Not the sampler's:
// that one replays PyTorch's and lives in sampler/. Not for secrets.

#include <cstdint>

namespace optcache {

// SplitMix64 (Steele, Lea, Flood 2014): one word of state, passes BigCrush. Not thread-safe.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    return Mix(state_);
  }
  // Uniform in [0, n); n > 0. The bias is below n / 2^64.
  std::uint64_t Below(std::uint64_t n) { return Next() % n; }
  // Uniform in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11U) * 0x1.0p-53; }

  // The finalizer alone: a good hash of one word.
  static std::uint64_t Mix(std::uint64_t z) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }

  // For std::shuffle.
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return Next(); }

 private:
  std::uint64_t state_;
};

}  // namespace optcache
