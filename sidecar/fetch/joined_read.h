#pragma once

// Which samples of one object are read by one request. Pure.

#include <cstddef>

#include "sidecar/ports/ports.h"

namespace optcache::sidecar {

// Joining saves requests and costs the bytes between samples, so those are few: the headers of an
// archive, not another sample. The rest bounds how long the first sample waits for the last.
struct JoinLimits {
  ByteCount gap_max = 16_KiB;
  ByteCount bytes_max = 4_MiB;
  std::size_t samples_max = 64;
};

// A stretch of an object, which grows at its ends. A value.
class JoinedRead {
 public:
  explicit JoinedRead(const StorePlace& first, const JoinLimits& limits = {})
      : whole_(first), limits_(limits) {}

  // Whether the sample is read along; then the stretch ends, or begins, with it. It must not
  // overlap what is taken already.
  bool TakeAfter(const StorePlace& place);
  bool TakeBefore(const StorePlace& place);

  const StorePlace& whole() const { return whole_; }
  std::size_t samples() const { return samples_; }

 private:
  bool Take(ByteCount begin, ByteCount end, ByteCount gap);

  StorePlace whole_;
  JoinLimits limits_;
  std::size_t samples_ = 1;
};

}  // namespace optcache::sidecar
