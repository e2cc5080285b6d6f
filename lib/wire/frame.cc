#include "wire/frame.h"

#include <array>
#include <string>

namespace optcache::wire {
namespace {

// By MessageType; the variant's order is the numbers' order.
constexpr std::array<std::string_view, std::variant_size_v<Message> + 1> kNames = {"",
                                                                                   "Hello",
                                                                                   "Welcome",
                                                                                   "Refusal",
                                                                                   "Get",
                                                                                   "SampleReply",
                                                                                   "Put",
                                                                                   "StoreReply",
                                                                                   "LeaseUpdate",
                                                                                   "StreamAttach",
                                                                                   "StreamProgress",
                                                                                   "Lookup",
                                                                                   "LookupReply",
                                                                                   "Holding",
                                                                                   "Announce",
                                                                                   "Push",
                                                                                   "StreamOrder",
                                                                                   "StreamTrace",
                                                                                   "StreamPassEnd",
                                                                                   "StoreHealth",
                                                                                   "Savings",
                                                                                   "StoreDemand",
                                                                                   "StoreShare"};

template <MessageType type, typename M>
constexpr bool kNumberIs =
    std::is_same_v<std::variant_alternative_t<static_cast<std::size_t>(type) - 1, Message>, M>;
static_assert(kNumberIs<MessageType::kHello, Hello> && kNumberIs<MessageType::kWelcome, Welcome> &&
              kNumberIs<MessageType::kRefusal, Refusal> && kNumberIs<MessageType::kGet, Get> &&
              kNumberIs<MessageType::kSampleReply, SampleReply> &&
              kNumberIs<MessageType::kPut, Put> &&
              kNumberIs<MessageType::kStoreReply, StoreReply> &&
              kNumberIs<MessageType::kLeaseUpdate, LeaseUpdate> &&
              kNumberIs<MessageType::kStreamAttach, StreamAttach> &&
              kNumberIs<MessageType::kStreamProgress, StreamProgress> &&
              kNumberIs<MessageType::kLookup, Lookup> &&
              kNumberIs<MessageType::kLookupReply, LookupReply> &&
              kNumberIs<MessageType::kHolding, Holding> &&
              kNumberIs<MessageType::kAnnounce, Announce> && kNumberIs<MessageType::kPush, Push> &&
              kNumberIs<MessageType::kStreamOrder, StreamOrder> &&
              kNumberIs<MessageType::kStreamTrace, StreamTrace> &&
              kNumberIs<MessageType::kStreamPassEnd, StreamPassEnd> &&
              kNumberIs<MessageType::kStoreHealth, StoreHealth> &&
              kNumberIs<MessageType::kSavings, Savings> &&
              kNumberIs<MessageType::kStoreDemand, StoreDemand> &&
              kNumberIs<MessageType::kStoreShare, StoreShare>);

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

std::uint16_t VersionOf(const Message& message) {
  const MessageType type = TypeOf(message);
  const auto* health = std::get_if<StoreHealth>(&message);
  if (health != nullptr && health->state == StoreState::kChanged) return 5;
  if (type >= MessageType::kStoreDemand) return 6;
  if (type >= MessageType::kSavings) return 4;
  if (type >= MessageType::kStreamTrace) return 3;
  return type >= MessageType::kStreamOrder ? 2 : 1;
}

std::optional<Message> ForOlder(const Message& message, std::uint16_t version) {
  const auto* health = std::get_if<StoreHealth>(&message);
  if (health == nullptr || version < 3) return std::nullopt;
  return StoreHealth{.dataset = health->dataset, .state = StoreState::kAnswers};
}

std::string_view TypeName(MessageType type) {
  return kNames.at(static_cast<std::size_t>(type));
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
  if (number == 0 || number >= kNames.size()) {
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
