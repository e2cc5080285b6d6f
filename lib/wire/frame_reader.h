#pragma once

// A connection's incoming bytes, in whatever cuts they arrive, as frames and payloads.
//
//   while (receive into reader.Space()) {
//     reader.Commit(received);
//     for (;;) {
//       auto event = reader.Next();   // Frame: say where its payload goes (SetSink), go on
//     }                               // PayloadEnd: the payload lies there; NeedMore: receive
//   }
//
// Payload bytes are received straight into the sink: Space() names the rest of the sink first and
// the buffer for the next frame after it, so one scatter read fills both. Only what arrived
// together with a frame's head is copied.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/codec.h"

namespace optcache::wire {

// The payload of the last Frame is complete. `intact`: its CRC-32C is the message's.
struct PayloadEnd {
  bool intact = false;
};

// Pure: bytes in, events out. Not thread-safe: a value with one owner.
class FrameReader {
 public:
  using Event = std::variant<NeedMore, Frame, PayloadEnd>;

  explicit FrameReader(FrameLimits limits = {});

  // For the frames that have not been decoded yet.
  void SetMaxBody(std::uint32_t bytes) { limits_.body_bytes = bytes; }

  // Where received bytes go: first the first span, then the second (either may be empty, not both).
  // Good until the next call.
  std::array<MutableByteSpan, 2> Space();

  // `received` bytes have been put into Space().
  void Commit(std::size_t received);

  // What the bytes say next. Errors are those of DecodeFrame, and final. After a Frame whose
  // message carries a payload, PayloadEnd comes before the next Frame.
  Result<Event> Next();

  // After such a Frame, before anything else: where its payload goes, of exactly its length, or
  // empty: the bytes are thrown away unsummed, and PayloadEnd says intact.
  void SetSink(MutableByteSpan sink);

  // From the next frame on they must be sealed. Between two frames only.
  void ExpectSealed(FrameSeal seal);

  // Part of a frame or payload has come.
  bool mid_frame() const { return payload_left_ > 0 || begin_ < end_; }

 private:
  // What is received at most at once into a sink, so that summing finds it in the CPU's cache.
  static constexpr std::size_t kMaxStep = 256U << 10U;
  // The buffer's size beside payloads, and for frames without: it grows as they fill it.
  static constexpr std::size_t kSmallBuffer = 1024;
  static constexpr std::size_t kLargeBuffer = 64U << 10U;

  void TakePayload(ByteSpan bytes);
  void MakeRoom(std::size_t wanted);

  FrameLimits limits_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;  // what has not been decoded yet: [begin_, end_)
  std::size_t end_ = 0;
  std::size_t read_ahead_ = kSmallBuffer * 4;
  std::size_t needed_ = kHeaderBytes;  // of the frame at begin_

  bool in_payload_ = false;
  MutableByteSpan sink_;  // what of it is still to be filled; not owned
  ByteCount payload_left_ = 0;
  bool discard_ = false;
  std::optional<FrameSeal> seal_;
  std::uint32_t expected_crc_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace optcache::wire
