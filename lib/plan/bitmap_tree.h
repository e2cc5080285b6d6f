#pragma once

// A set of integers from a known range with a fast maximum: a bitmap, and above it bitmaps that say
// which words of the level below are not zero.
//
//   level 2                 [ 1 ]                       64 * 64 * 64 integers a word
//   level 1        [ 1 0 1 0 ... ]  ...                 64 * 64
//   level 0  [ ..1.. ] [ 0 ] [ 1.1 ] ...                64
//
// A million integers need four levels and 130 KB; every operation touches at most one word a level.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace optcache::plan {

// Not thread-safe: a value with one owner.
class BitmapTree {
 public:
  // For integers below `range`.
  explicit BitmapTree(std::uint32_t range) {
    std::size_t words = range;
    do {
      words = words / 64 + 1;
      levels_[depth_++].assign(words, 0);
    } while (words > 1);
  }

  bool empty() const { return levels_[depth_ - 1][0] == 0; }
  bool Contains(std::uint32_t i) const { return ((levels_[0][i / 64] >> (i % 64)) & 1U) != 0; }

  void Insert(std::uint32_t i) {
    for (std::size_t level = 0; level < depth_; ++level) {
      std::uint64_t& word = levels_[level][i / 64];
      const bool was_empty = word == 0;
      word |= std::uint64_t{1} << (i % 64);
      if (!was_empty) return;
      i /= 64;
    }
  }

  void Erase(std::uint32_t i) {
    for (std::size_t level = 0; level < depth_; ++level) {
      std::uint64_t& word = levels_[level][i / 64];
      word &= ~(std::uint64_t{1} << (i % 64));
      if (word != 0) return;
      i /= 64;
    }
  }

  // A bit each, the first in the lowest place of the first word.
  std::span<const std::uint64_t> words() const { return levels_[0]; }

  // The largest element; the set must not be empty.
  std::uint32_t Max() const {
    std::uint32_t i = 0;
    for (std::size_t level = depth_; level-- > 0;) {
      i = i * 64 + Top(levels_[level][i]);
    }
    return i;
  }

 private:
  static std::uint32_t Top(std::uint64_t word) {
    return static_cast<std::uint32_t>(std::bit_width(word) - 1);
  }

  static constexpr std::size_t kMaxDepth = 6;  // 64^6 integers

  std::size_t depth_ = 0;
  std::array<std::vector<std::uint64_t>, kMaxDepth> levels_;
};

}  // namespace optcache::plan
