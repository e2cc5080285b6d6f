#pragma once

// PCG64 (O'Neill 2014, XSL-RR 128/64) seeded as numpy.random.default_rng seeds it.

#include <cstdint>

namespace optcache::sampler {

// The words of numpy.random.default_rng(seed). Not thread-safe: a value.
class Pcg64 {
 public:
  explicit Pcg64(std::uint64_t seed);

  std::uint64_t Next64();
  // The low half of a 64-bit word first, then its high half.
  std::uint32_t Next32();
  // Uniform in 0 to `last`, last < 2^32 - 1, as Generator draws a bounded integer: Lemire's method,
  // which draws again for the few words that would favour some numbers.
  std::uint32_t UpTo(std::uint32_t last);

 private:
  __extension__ using Word128 = unsigned __int128;

  Word128 state_ = 0;
  Word128 increment_;
  std::uint32_t kept_ = 0;  // the high half of the last word, if has_kept_
  bool has_kept_ = false;
};

}  // namespace optcache::sampler
