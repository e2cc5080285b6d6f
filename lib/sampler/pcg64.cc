#include "sampler/pcg64.h"

#include <array>
#include <bit>
#include <cstddef>

namespace optcache::sampler {
namespace {

// numpy.random.SeedSequence, after O'Neill's seed_seq_fe: a pool of four words, stirred.
class SeedPool {
 public:
  explicit SeedPool(std::uint64_t seed) {
    const std::array<std::uint32_t, kWords> entropy = {
        static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U), 0, 0};
    for (std::size_t i = 0; i < kWords; ++i)
      pool_[i] = Hash(entropy[i]);
    for (std::size_t from = 0; from < kWords; ++from) {
      for (std::size_t to = 0; to < kWords; ++to) {
        if (from != to) pool_[to] = Mix(pool_[to], Hash(pool_[from]));
      }
    }
  }

  std::uint64_t Next64() {
    const std::uint64_t low = Next();
    return (std::uint64_t{Next()} << 32U) | low;
  }

 private:
  static constexpr std::size_t kWords = 4;

  static std::uint32_t Fold(std::uint32_t word) { return word ^ (word >> 16U); }

  std::uint32_t Hash(std::uint32_t value) {
    value ^= hash_in_;
    hash_in_ *= 0x931e8875U;
    return Fold(value * hash_in_);
  }
  static std::uint32_t Mix(std::uint32_t x, std::uint32_t y) {
    return Fold(0xca01f9ddU * x - 0x4973f715U * y);
  }
  std::uint32_t Next() {
    std::uint32_t value = pool_[at_++ % kWords] ^ hash_out_;
    hash_out_ *= 0x58f38dedU;
    return Fold(value * hash_out_);
  }

  std::array<std::uint32_t, kWords> pool_{};
  std::uint32_t hash_in_ = 0x43b0d7e5U;
  std::uint32_t hash_out_ = 0x8b51f9ddU;
  std::size_t at_ = 0;
};

}  // namespace

Pcg64::Pcg64(std::uint64_t seed) {
  SeedPool pool(seed);
  const auto next = [&pool] {
    const Word128 high = pool.Next64();
    return (high << 64U) | pool.Next64();
  };
  const Word128 start = next();
  increment_ = (next() << 1U) | 1U;
  Next64();
  state_ += start;
  Next64();
}

std::uint64_t Pcg64::Next64() {
  constexpr Word128 kMultiplier = (Word128{2549297995355413924ULL} << 64U) | 4865540595714422341ULL;
  state_ = state_ * kMultiplier + increment_;
  const auto folded =
      static_cast<std::uint64_t>(state_ >> 64U) ^ static_cast<std::uint64_t>(state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122U));
}

std::uint32_t Pcg64::Next32() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const std::uint64_t word = Next64();
  kept_ = static_cast<std::uint32_t>(word >> 32U);
  has_kept_ = true;
  return static_cast<std::uint32_t>(word);
}

std::uint32_t Pcg64::UpTo(std::uint32_t last) {
  if (last == 0) return 0;
  const std::uint64_t range = std::uint64_t{last} + 1;
  std::uint64_t product = Next32() * range;
  if (static_cast<std::uint32_t>(product) < range) {
    const std::uint64_t threshold = (0xffffffffULL - last) % range;
    while (static_cast<std::uint32_t>(product) < threshold)
      product = Next32() * range;
  }
  return static_cast<std::uint32_t>(product >> 32U);
}

}  // namespace optcache::sampler
