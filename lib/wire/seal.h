#pragma once

// Sealed frames: what a connection in plaintext carries after it was authenticated over TLS
// (docs/formats/wire.md, Bulk). The keyed sum itself comes from outside, so that the protocol stays
// free of cryptography.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"

namespace optcache::wire {

inline constexpr std::size_t kTagBytes = 16;
using Tag = std::array<std::byte, kTagBytes>;

// The keyed sum of one direction of one connection. Not thread-safe.
class FrameMac {
 public:
  virtual ~FrameMac() = default;
  // Of the frame with this number; `head` is its header and body.
  virtual Tag Compute(std::uint64_t number, ByteSpan head) = 0;
};

// Numbers the frames of one direction as it tags or checks them. Not thread-safe: a value with one
// owner.
class FrameSeal {
 public:
  explicit FrameSeal(std::unique_ptr<FrameMac> mac);

  // Of the next frame to send.
  Tag Next(ByteSpan head);
  // The last `frames` were not sent after all: what comes instead has their numbers.
  void Withdraw(std::uint64_t frames);
  // Is `tag` that of the next frame to come? Takes as long whatever differs.
  bool Accept(ByteSpan head, ByteSpan tag);

 private:
  std::unique_ptr<FrameMac> mac_;
  std::uint64_t next_ = 0;
};

}  // namespace optcache::wire
