#pragma once

// Which bytes of an object have been asked for. Pure.

#include <cstddef>
#include <map>

#include "base/bytes.h"
#include "sidecar/s3/byte_range.h"

namespace optcache::sidecar {

// Not thread-safe: a value with one owner.
class ByteSet {
 public:
  // Stretches with gaps between them. What would be one more is left out.
  static constexpr std::size_t kStretchesMax = 1024;

  void Add(const ByteRange& part);
  // How many bytes it has, each counted once.
  ByteCount count() const { return count_; }

 private:
  std::map<ByteCount, ByteCount> stretches_;  // end by begin; none touches another
  ByteCount count_ = 0;
};

}  // namespace optcache::sidecar
