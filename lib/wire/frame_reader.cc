#include "wire/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"

namespace optcache::wire {

FrameReader::FrameReader(FrameLimits limits) : limits_(limits) {}

std::array<MutableByteSpan, 2> FrameReader::Space() {
  if (!in_payload_) {
    MakeRoom(std::max(read_ahead_, needed_));
    return {MutableByteSpan(), MutableByteSpan(buffer_).subspan(end_)};
  }
  if (discard_) {
    MakeRoom(kLargeBuffer);
    const std::size_t room = buffer_.size() - end_;
    const auto wanted = static_cast<std::size_t>(std::min<ByteCount>(room, payload_left_));
    return {MutableByteSpan(), MutableByteSpan(buffer_).subspan(end_, wanted)};
  }
  DCHECK(begin_ == end_);  // Next() was called until it needed more.
  if (payload_left_ > kMaxStep) return {sink_.first(kMaxStep), MutableByteSpan()};
  MakeRoom(kSmallBuffer);
  return {sink_, MutableByteSpan(buffer_).subspan(end_)};
}

void FrameReader::Commit(std::size_t received) {
  if (in_payload_ && !discard_) {
    const std::size_t n = std::min(received, sink_.size());
    TakePayload(sink_.first(n));
    received -= n;
  }
  CHECK(received <= buffer_.size() - end_);
  end_ += received;
  // A buffer that came back full was too small for what the peer has to say.
  if (end_ == buffer_.size()) read_ahead_ = std::min(read_ahead_ * 4, kLargeBuffer);
}

Result<FrameReader::Event> FrameReader::Next() {
  if (in_payload_) {
    const auto n = static_cast<std::size_t>(std::min<ByteCount>(end_ - begin_, payload_left_));
    if (n > 0) {
      const ByteSpan bytes = ByteSpan(buffer_).subspan(begin_, n);
      if (!discard_) std::memcpy(sink_.data(), bytes.data(), n);
      begin_ += n;
      TakePayload(bytes);
    }
    if (payload_left_ > 0) return NeedMore{1};
    in_payload_ = false;
    return PayloadEnd{.intact = discard_ || crc_ == expected_crc_};
  }
  ASSIGN_OR_RETURN(Decoded decoded, DecodeFrame(ByteSpan(buffer_).subspan(begin_, end_ - begin_),
                                                limits_, seal_ ? &*seal_ : nullptr));
  if (const auto* more = std::get_if<NeedMore>(&decoded)) {
    needed_ = more->bytes;
    return *more;
  }
  auto& frame = std::get<Frame>(decoded);
  begin_ += frame.size;
  needed_ = kHeaderBytes;
  if (CarriesPayload(frame.message)) {
    in_payload_ = true;
    discard_ = true;  // until SetSink
    sink_ = {};
    payload_left_ = frame.payload_length;
    expected_crc_ = PayloadCrc(frame.message);
    crc_ = 0;
    if (payload_left_ >= kLargeBuffer / 2) read_ahead_ = kSmallBuffer;
  }
  return std::move(frame);
}

void FrameReader::SetSink(MutableByteSpan sink) {
  CHECK(in_payload_ && (sink.empty() || sink.size() == payload_left_));
  sink_ = sink;
  discard_ = sink.empty() && payload_left_ > 0;
}

void FrameReader::ExpectSealed(FrameSeal seal) {
  CHECK(!mid_frame() && !in_payload_);
  seal_ = std::move(seal);
}

// `bytes` are the next of the payload and lie where they belong, or in the buffer if discarded.
void FrameReader::TakePayload(ByteSpan bytes) {
  payload_left_ -= bytes.size();
  if (discard_) return;
  crc_ = Crc32c(bytes, crc_);
  sink_ = sink_.subspan(bytes.size());
}

// Makes [end_, size) the free part of a buffer of `wanted` bytes, or more if what is kept needs it.
void FrameReader::MakeRoom(std::size_t wanted) {
  const std::size_t kept = end_ - begin_;
  if (begin_ > 0 && kept > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, kept);
  begin_ = 0;
  end_ = kept;
  if (wanted <= kept) wanted = kept + kSmallBuffer;
  if (buffer_.size() != wanted) {
    buffer_.resize(wanted);
    if (buffer_.capacity() > 2 * std::max(wanted, kLargeBuffer)) buffer_.shrink_to_fit();
  }
}

}  // namespace optcache::wire
