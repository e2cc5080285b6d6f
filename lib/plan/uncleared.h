#pragma once

// Large buffers whose values are written before they are read. Clearing them could not be stopped.

#include <cstddef>
#include <memory>
#include <span>

namespace optcache::plan {

// Not thread-safe: a value with one owner.
template <typename T>
class Uncleared {
 public:
  Uncleared() = default;
  explicit Uncleared(std::size_t size) { Resize(size); }

  // The values mean nothing then. Keeps the buffer if it is large enough.
  void Resize(std::size_t size) {
    if (size > capacity_) {
      values_.reset();  // before the next one is made
      values_ = std::make_unique_for_overwrite<T[]>(size);
      capacity_ = size;
    }
    size_ = size;
  }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t at) { return values_[at]; }
  const T& operator[](std::size_t at) const { return values_[at]; }
  std::span<T> span() { return {values_.get(), size_}; }

 private:
  std::unique_ptr<T[]> values_;  // NOLINT(cppcoreguidelines-avoid-c-arrays)
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace optcache::plan
