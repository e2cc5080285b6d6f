#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "handoff/messages.h"

namespace optcache::handoff {

struct Frame {
  FrameType type = FrameType::kHello;
  RequestId request = 0;
  ByteSpan body;
};

// Cuts what a client sends into frames. Holds at most one frame of the largest size and a read's
// worth more. Not thread-safe: one owner.
class FrameBuffer {
 public:
  // Where the next bytes go; Commit says how many came.
  MutableByteSpan Prepare();
  void Commit(std::size_t bytes) { end_ += bytes; }

  // The next whole frame, if it has come; its body is good until Prepare. kInvalidArgument: these
  // are no frames, there is no use in going on.
  Result<std::optional<Frame>> Next();

  // Bytes that have come and were not taken.
  std::size_t pending() const { return end_ - begin_; }

 private:
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t wanted_ = 0;  // length of the frame at begin_, once its header is there
};

}  // namespace optcache::handoff
