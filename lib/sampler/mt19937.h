#pragma once

// The Mersenne Twister MT19937 (Matsumoto, Nishimura 1998) as PyTorch's CPU generator runs it.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/stop_check.h"

namespace optcache::sampler {

// The same words as std::mt19937 with the same seed, but made a block at a time by loops that the
// compiler vectorises, and skipped without being made. Not thread-safe: a value.
class Mt19937 {
 public:
  // torch.Generator.manual_seed(seed): only the low 32 bits count.
  explicit Mt19937(std::uint64_t seed);

  std::uint32_t Next() {
    if (index_ == kWords) Refill();
    return words_[index_++];
  }
  // The first word drawn is the high half.
  std::uint64_t Next64() {
    const std::uint64_t high = Next();
    return (high << 32U) | Next();
  }
  // Draws `count` words and drops them; fewer once `stop` says so.
  void Discard(std::uint64_t count, const StopCheck& stop = {});

 private:
  static constexpr std::size_t kWords = 624;

  void Advance();  // the recurrence: the next 624 words of state
  void Refill();   // Advance, and temper the state into words_

  std::array<std::uint32_t, kWords> state_;
  std::array<std::uint32_t, kWords> words_{};
  std::size_t index_ = kWords;
};

}  // namespace optcache::sampler
