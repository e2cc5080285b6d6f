#pragma once

// The frame: what every message travels in. Bytes: docs/formats/wire.md.
//
//   0      2         3      4       8            12            16               24     28
//   "OC"   version   type   flags   request id   body length   payload length   CRC    body,
//   payload

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "wire/messages.h"

namespace optcache::wire {

inline constexpr std::size_t kHeaderBytes = 28;
inline constexpr std::uint8_t kFrameVersion = 1;          // of this layout, not of the messages
inline constexpr std::uint32_t kRequiredFlags = 0xffffU;  // unknown ones of these end the
                                                          // connection, the others are hints
inline constexpr std::uint32_t kSealedFlag = 1U;          // a tag follows the body (wire/seal.h)
inline constexpr std::size_t kMaxStringBytes = 4096;
// Of a frame's body before it is known who asks: Hello, Welcome and Refusal, with room to grow.
inline constexpr std::uint32_t kMaxHelloBodyBytes = 16U << 10U;

// About::number of a message.
enum class MessageType : std::uint8_t {};
template <typename M>
inline constexpr MessageType kTypeOf{M::kAbout.number};

MessageType TypeOf(const Message& message);
// What the message of that number declares. There must be one.
const About& AboutOf(MessageType type);
// The version of the protocol in which it came, with what it says.
std::uint16_t VersionOf(const Message& message);
// What a peer is told instead of a message of a later version than its own; nullopt: nothing.
std::optional<Message> ForOlder(const Message& message, std::uint16_t version);

struct FrameHeader {
  MessageType type = kTypeOf<Hello>;
  std::uint32_t flags = 0;
  std::uint32_t request_id = 0;
  std::uint32_t body_length = 0;
  ByteCount payload_length = 0;
  std::uint32_t crc = 0;  // CRC-32C of the header before it and of the body
};

struct FrameLimits {
  ByteCount payload_bytes = kMaxPayloadBytes;
  std::uint32_t body_bytes = kMaxBodyBytes;
};

// Reads and checks a header except for its CRC, which needs the body; `bytes` has kHeaderBytes or
// more. kInvalidArgument: not ours, another layout, an unknown type or required flag, or over a
// limit.
Result<FrameHeader> ParseHeader(ByteSpan bytes, const FrameLimits& limits = {});

}  // namespace optcache::wire
