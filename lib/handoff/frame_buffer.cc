#include "handoff/frame_buffer.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace optcache::handoff {
namespace {

constexpr std::size_t kReadBytes = 16 << 10;

}  // namespace

MutableByteSpan FrameBuffer::Prepare() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, pending());
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t needed = std::max(wanted_, end_ + 1);
  if (end_ == 0 && buffer_.size() > kReadBytes) buffer_ = std::vector<std::byte>();
  if (buffer_.size() < needed) buffer_.resize(std::max(needed, kReadBytes));
  return MutableByteSpan(buffer_).subspan(end_);
}

Result<std::optional<Frame>> FrameBuffer::Next() {
  FrameHeader header;
  if (pending() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, buffer_.data() + begin_, sizeof(header));
  if (header.zero[0] != 0 || header.zero[1] != 0 || header.zero[2] != 0) {
    return Error(Code::kInvalidArgument, "these bytes are no frame of the hand-over protocol");
  }
  if (header.body_bytes > kMaxRequestBytes) {
    return Error(Code::kInvalidArgument, "a frame has " + std::to_string(header.body_bytes) +
                                             " bytes, at most " + std::to_string(kMaxRequestBytes) +
                                             " are allowed");
  }
  wanted_ = sizeof(header) + header.body_bytes;
  if (pending() < wanted_) return std::nullopt;
  const ByteSpan body =
      ByteSpan(buffer_).subspan(begin_ + sizeof(header), std::size_t{header.body_bytes});
  begin_ += wanted_;
  wanted_ = 0;
  return Frame{.type = header.type, .request = header.request, .body = body};
}

}  // namespace optcache::handoff
