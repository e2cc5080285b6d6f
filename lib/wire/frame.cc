#include "wire/frame.h"

#include <array>
#include <string>
#include <utility>
#include <variant>

namespace optcache::wire {
namespace {

// By number, from 1 on.
constexpr auto kMessages = []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array{std::variant_alternative_t<kIndex, Message>::kAbout...};
}(std::make_index_sequence<std::variant_size_v<Message>>());

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < kMessages.size(); ++i) {
    if (kMessages[i].number != i + 1) return false;
  }
  return true;
}
static_assert(AreInOrder(), "the order of Message is that of the numbers, without a gap");

template <typename T>
T Load(ByteSpan bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

}  // namespace

MessageType TypeOf(const Message& message) {
  return static_cast<MessageType>(message.index() + 1);
}

const About& AboutOf(MessageType type) {
  return kMessages.at(static_cast<std::size_t>(type) - 1);
}

std::uint16_t VersionOf(const Message& message) {
  const auto* health = std::get_if<StoreHealth>(&message);
  if (health != nullptr && health->state == StoreState::kChanged) return 5;
  return AboutOf(TypeOf(message)).since;
}

std::optional<Message> ForOlder(const Message& message, std::uint16_t version) {
  const auto* health = std::get_if<StoreHealth>(&message);
  if (health == nullptr || version < 3) return std::nullopt;
  return StoreHealth{.dataset = health->dataset, .state = StoreState::kAnswers};
}

Result<FrameHeader> ParseHeader(ByteSpan bytes, const FrameLimits& limits) {
  if (bytes[0] != std::byte{'O'} || bytes[1] != std::byte{'C'}) {
    return Error(Code::kInvalidArgument, "these bytes are not the optcache protocol");
  }
  if (const auto version = Load<std::uint8_t>(bytes, 2); version != kFrameVersion) {
    return Error(Code::kInvalidArgument,
                 "frame layout " + std::to_string(version) + " is not known here, only 1");
  }
  const auto number = Load<std::uint8_t>(bytes, 3);
  if (number == 0 || number > kMessages.size()) {
    return Error(Code::kInvalidArgument,
                 "message type " + std::to_string(number) + " is not known here");
  }
  FrameHeader header{.type = static_cast<MessageType>(number),
                     .flags = Load<std::uint32_t>(bytes, 4),
                     .request_id = Load<std::uint32_t>(bytes, 8),
                     .body_length = Load<std::uint32_t>(bytes, 12),
                     .payload_length = Load<std::uint64_t>(bytes, 16),
                     .crc = Load<std::uint32_t>(bytes, 24)};
  if ((header.flags & kRequiredFlags & ~kSealedFlag) != 0) {
    return Error(Code::kInvalidArgument,
                 "frame flags " + std::to_string(header.flags) + " are not known here");
  }
  if (header.body_length > limits.body_bytes) {
    return Error(Code::kInvalidArgument, "a body of " + std::to_string(header.body_length) +
                                             " bytes is over the limit of " +
                                             std::to_string(limits.body_bytes));
  }
  if (header.payload_length > limits.payload_bytes) {
    return Error(Code::kInvalidArgument, "a payload of " + std::to_string(header.payload_length) +
                                             " bytes is over the limit of " +
                                             std::to_string(limits.payload_bytes));
  }
  return header;
}

}  // namespace optcache::wire
