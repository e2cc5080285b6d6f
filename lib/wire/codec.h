#pragma once

// Messages to bytes and back. Pure functions; bytes from outside are never trusted.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/frame.h"
#include "wire/messages.h"
#include "wire/seal.h"

namespace optcache::wire {

// Whether a payload follows: SampleReply here or at a peer, Put, Push. Its length may be 0.
bool CarriesPayload(const Message& message);

// The CRC-32C that a message which carries a payload tells of it; 0 for others.
std::uint32_t PayloadCrc(const Message& message);

// Appends header and body; the payload's bytes, if there are any, follow on the wire. Strings are
// cut to kMaxStringBytes. With a seal the frame is sealed. kResourceExhausted: a list, a part or
// the body is over its limit, and nothing was appended.
Status AppendFrame(std::uint32_t request_id, const Message& message, ByteCount payload_length,
                   std::vector<std::byte>& out, FrameSeal* seal = nullptr);

struct Frame {
  std::uint32_t request_id = 0;
  Message message;
  ByteCount payload_length = 0;
  std::size_t size = 0;  // of header, body and tag
};

// How many bytes from the frame's start are needed before decoding can go on.
struct NeedMore {
  std::size_t bytes = 0;
};

using Decoded = std::variant<NeedMore, Frame>;

// Decodes the frame at the start of `bytes`, of which any part may have come. Allocates only what
// the bytes at hand can fill. kInvalidArgument: this is not a frame of this protocol. kDataLoss:
// its CRC is wrong. kPermissionDenied: its tag is. After each the stream cannot be read on.
// With a seal frames must be sealed, without one they may not; only a whole frame counts there.
Result<Decoded> DecodeFrame(ByteSpan bytes, const FrameLimits& limits = {},
                            FrameSeal* seal = nullptr);

}  // namespace optcache::wire
