#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace optcache::plan {

// A fixed number of bits, all clear at first. Not thread-safe: a value.
class BitVector {
 public:
  BitVector() = default;
  explicit BitVector(std::size_t size) : words_((size + 63) / 64) {}

  bool empty() const { return words_.empty(); }
  // 64 bits each, the first in the lowest place.
  std::span<const std::uint64_t> words() const { return words_; }
  bool Test(std::size_t i) const { return ((words_[i / 64] >> (i % 64)) & 1U) != 0; }
  // Sets the bit if `on`; cheaper than a branch when that is hard to predict.
  void SetIf(std::size_t i, bool on) { words_[i / 64] |= std::uint64_t{on} << (i % 64); }
  void Set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  // Soon bit `i` will be wanted.
  void Prefetch(std::size_t i) const { __builtin_prefetch(&words_[i / 64]); }
  // Sets those of the bits from `at` on that are set in `words`; beyond the end none may be.
  void Paste(std::size_t at, std::span<const std::uint64_t> words) {
    const std::size_t shift = at % 64;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == 0) continue;
      words_[at / 64 + i] |= words[i] << shift;
      const std::uint64_t carry = shift == 0 ? 0 : words[i] >> (64 - shift);
      if (carry != 0) words_[at / 64 + i + 1] |= carry;
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace optcache::plan
