#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/crc32c.h"
#include "wire/seal.h"

namespace optcache::wire {

// A keyed sum that shows where keys, numbers and bytes go. It keeps nobody out.
class SumMac final : public FrameMac {
 public:
  explicit SumMac(std::uint32_t key) : key_(key) {}
  Tag Compute(std::uint64_t number, ByteSpan head) override {
    Tag tag = {};
    for (std::size_t i = 0; i < 8; ++i)
      tag.at(i) = static_cast<std::byte>(number >> (8 * i));
    const std::uint32_t sum = Crc32c(head, Crc32c(tag, key_));
    for (std::size_t i = 0; i < kTagBytes; ++i)
      tag.at(i) = static_cast<std::byte>(sum >> (i % 4 * 8)) ^ static_cast<std::byte>(i);
    return tag;
  }

 private:
  std::uint32_t key_;
};

inline FrameSeal SumSeal(std::uint32_t key) {
  return FrameSeal(std::make_unique<SumMac>(key));
}

}  // namespace optcache::wire
