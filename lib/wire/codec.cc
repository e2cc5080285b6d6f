#include "wire/codec.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "wire/internal/body_reader.h"
#include "wire/internal/body_writer.h"

namespace optcache::wire {
namespace {

constexpr std::size_t kCrcAt = 24;

template <typename T>
void Store(std::vector<std::byte>& out, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xffU);
  }
}

std::uint32_t FrameCrc(ByteSpan header, ByteSpan body) {
  return Crc32c(body, Crc32c(header.first(kCrcAt)));
}

// The message of the alternative with this number, with default values.
template <std::size_t index = 0>
Message Empty(std::size_t wanted) {
  if constexpr (index + 1 < std::variant_size_v<Message>) {
    if (index != wanted) return Empty<index + 1>(wanted);
  }
  return Message(std::in_place_index<index>);
}

// Hello, Welcome and Refusal are read by parts that may be older than their sender, so what a
// later version adds at their end is not an error.
bool MayGrow(MessageType type) {
  return type == kTypeOf<Hello> || type == kTypeOf<Welcome> || type == kTypeOf<Refusal>;
}

Result<Message> DecodeBody(MessageType type, ByteSpan body) {
  Message message = Empty(static_cast<std::size_t>(type) - 1);
  internal::BodyReader reader(body);
  std::visit([&reader](auto& m) { return reader.Read(m); }, message);
  const char* error = reader.error();
  if (error == nullptr && reader.remaining() != 0 && !MayGrow(type)) {
    error = "the body goes on after its last field";
  }
  if (error != nullptr) {
    return Error(Code::kInvalidArgument, std::string(AboutOf(type).name) + ": " + error);
  }
  return message;
}

}  // namespace

bool CarriesPayload(const Message& message) {
  if (const auto* reply = std::get_if<SampleReply>(&message)) {
    return reply->answer == Answer::kHere || reply->answer == Answer::kPeer;
  }
  return std::holds_alternative<Put>(message) || std::holds_alternative<Push>(message);
}

std::uint32_t PayloadCrc(const Message& message) {
  if (!CarriesPayload(message)) return 0;
  if (const auto* put = std::get_if<Put>(&message)) return put->crc;
  if (const auto* push = std::get_if<Push>(&message)) return push->crc;
  return std::get<SampleReply>(message).crc;
}

Status AppendFrame(std::uint32_t request_id, const Message& message, ByteCount payload_length,
                   std::vector<std::byte>& out, FrameSeal* seal) {
  CHECK(payload_length == 0 || CarriesPayload(message));
  const std::size_t start = out.size();
  internal::BodyWriter writer(out);
  writer.Write(std::uint8_t{'O'});
  writer.Write(std::uint8_t{'C'});
  writer.Write(kFrameVersion);
  writer.Write(TypeOf(message));
  writer.Write(seal != nullptr ? kSealedFlag : std::uint32_t{0});
  writer.Write(request_id);
  writer.Write(std::uint32_t{0});  // body length, known below
  writer.Write(payload_length);
  writer.Write(std::uint32_t{0});  // CRC
  std::visit([&writer](const auto& m) { writer.Write(m); }, message);

  const std::size_t body_length = out.size() - start - kHeaderBytes;
  const char* error = writer.error();
  if (error == nullptr && body_length > kMaxBodyBytes) error = "the body has more than 1 MiB";
  if (error != nullptr) {
    out.resize(start);
    return {Code::kResourceExhausted,
            std::string(AboutOf(TypeOf(message)).name) + " cannot be sent: " + error};
  }
  Store(out, start + 12, static_cast<std::uint32_t>(body_length));
  const ByteSpan frame = ByteSpan(out).subspan(start);
  Store(out, start + kCrcAt, FrameCrc(frame, frame.subspan(kHeaderBytes)));
  if (seal != nullptr) {
    const Tag tag = seal->Next(frame);
    out.insert(out.end(), tag.begin(), tag.end());
  }
  return OkStatus();
}

Result<Decoded> DecodeFrame(ByteSpan bytes, const FrameLimits& limits, FrameSeal* seal) {
  if (bytes.size() < kHeaderBytes) return NeedMore{kHeaderBytes};
  ASSIGN_OR_RETURN(const FrameHeader header, ParseHeader(bytes, limits));
  if (const bool sealed = (header.flags & kSealedFlag) != 0; sealed != (seal != nullptr)) {
    return Error(Code::kInvalidArgument,
                 std::string(AboutOf(header.type).name) +
                     (sealed ? " is sealed, but no key was agreed on" : " is not sealed"));
  }
  const std::size_t head_size = kHeaderBytes + header.body_length;
  const std::size_t size = head_size + (seal != nullptr ? kTagBytes : 0);
  if (bytes.size() < size) return NeedMore{size};

  // First, as everything after it may trust the sender.
  if (seal != nullptr &&
      !seal->Accept(bytes.first(head_size), bytes.subspan(head_size, kTagBytes))) {
    return Error(Code::kPermissionDenied,
                 std::string(AboutOf(header.type).name) +
                     ": the frame's tag is wrong; a machine on the way changed, repeated or "
                     "left out frames");
  }
  const ByteSpan body = bytes.subspan(kHeaderBytes, header.body_length);
  if (FrameCrc(bytes, body) != header.crc) {
    return Error(Code::kDataLoss, std::string(AboutOf(header.type).name) +
                                      ": the frame's checksum is wrong; bytes were damaged on "
                                      "their way");
  }
  ASSIGN_OR_RETURN(Message message, DecodeBody(header.type, body));
  if (header.payload_length != 0 && !CarriesPayload(message)) {
    return Error(Code::kInvalidArgument,
                 std::string(AboutOf(header.type).name) + " has a payload but may have none");
  }
  return Frame{.request_id = header.request_id,
               .message = std::move(message),
               .payload_length = header.payload_length,
               .size = size};
}

}  // namespace optcache::wire
