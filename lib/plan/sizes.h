#pragma once

// How many bytes each sample takes in a cache.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace optcache::plan {

// The sizes of samples 0 to count - 1. Equal sizes take no memory. Cheap to copy: the copies share
// the list, which never changes.
class Sizes {
 public:
  Sizes() = default;
  static Sizes Equal(std::uint32_t count, std::uint32_t bytes);
  explicit Sizes(std::vector<std::uint32_t> bytes);

  std::uint32_t count() const { return count_; }
  bool equal() const { return list_ == nullptr; }
  ByteCount total() const { return total_; }
  std::uint32_t largest() const { return largest_; }
  std::uint32_t operator[](SampleId sample) const { return list_ ? (*list_)[sample] : each_; }

 private:
  std::uint32_t count_ = 0;
  std::uint32_t each_ = 0;
  std::uint32_t largest_ = 0;
  ByteCount total_ = 0;
  std::shared_ptr<const std::vector<std::uint32_t>> list_;
};

}  // namespace optcache::plan
