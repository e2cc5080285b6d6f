#pragma once

// Messages to bytes and back (docs/formats/handoff.md). Pure functions; bytes from a client are
// never trusted.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "handoff/messages.h"

namespace optcache::handoff {

// What a body says. kInvalidArgument names the message and what is wrong with it.
Result<ClientMessage> DecodeClientMessage(FrameType type, ByteSpan body);

using FrameBytes = std::vector<std::byte>;

// A client's whole frame, as the server reads it. Lists and strings are within their limits.
FrameBytes EncodeClientFrame(RequestId request, const ClientMessage& message);

// --- The server's frames. Texts are cut to kMaxStringBytes.
FrameBytes EncodeWelcome(RequestId request, std::uint16_t version, ByteCount arena_size);
FrameBytes EncodeOpened(RequestId request, const OpenReply& reply, std::uint16_t version);
FrameBytes EncodeAttached(RequestId request, const AttachReply& reply, std::uint16_t version);
FrameBytes EncodeDone(RequestId request);
FrameBytes EncodeWaiting(RequestId request, std::string_view why);
FrameBytes EncodeError(RequestId request, const Status& status);
FrameBytes EncodeComputedOpened(RequestId request, const OpenComputedReply& reply);
FrameBytes EncodeValue(RequestId request, const ValueReply& reply);
FrameBytes EncodeCompute(RequestId request, const ComputeReply& reply);
FrameBytes EncodeCounts(RequestId request, const ComputedCounts& counts);
FrameBytes EncodeReads(RequestId request, const ReadCounts& counts);

// Bytes to be written, one after the other: `owned`, or those that `pin` keeps.
struct Piece {
  FrameBytes owned;
  ByteSpan pinned;
  std::shared_ptr<const void> pin;  // shared with other users of the bytes

  ByteSpan bytes() const { return pin != nullptr ? pinned : ByteSpan(owned); }
};

// A Samples frame: what is inline is not copied. kResourceExhausted: the frame would be longer than
// kMaxReplyBytes.
Result<std::vector<Piece>> EncodeSamples(RequestId request, const SamplesReply& reply,
                                         std::uint16_t version);

}  // namespace optcache::handoff
