#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "wire/codec.h"
#include "wire/internal/fields.h"

namespace optcache::wire {

// Fills a message with random but valid values, field by field.
class RandomFiller {
 public:
  explicit RandomFiller(Random& random) : random_(random) {}

  template <typename T>
    requires std::is_integral_v<T>
  void operator()(T& value) {
    value = static_cast<T>(random_.Next());
  }
  void operator()(bool& value) { value = random_.Below(2) == 1; }
  void operator()(Role& value) { value = static_cast<Role>(1 + random_.Below(2)); }
  void operator()(GetMode& value) { value = static_cast<GetMode>(random_.Below(3)); }
  void operator()(Answer& value) { value = static_cast<Answer>(random_.Below(6)); }
  void operator()(LeaseEvent& value) { value = static_cast<LeaseEvent>(random_.Below(3)); }
  void operator()(Found& value) { value = static_cast<Found>(random_.Below(4)); }
  void operator()(StoreState& value) { value = static_cast<StoreState>(random_.Below(3)); }
  void operator()(Code& value) { value = static_cast<Code>(random_.Below(11)); }
  void operator()(std::string& value) {
    value.resize(random_.Below(random_.Below(20) == 0 ? kMaxStringBytes + 1 : 30));
    for (char& c : value)
      c = static_cast<char>(random_.Next());
  }
  void operator()(std::vector<std::byte>& bytes) {
    bytes.resize(random_.Below(random_.Below(20) == 0 ? kMaxPartBytes + 1 : 40));
    for (std::byte& b : bytes)
      b = static_cast<std::byte>(random_.Next());
  }
  template <typename T>
  void operator()(std::vector<T>& items) {
    items.resize(random_.Below(random_.Below(20) == 0 ? kMaxItems + 1 : 20));
    for (T& item : items)
      (*this)(item);
  }
  template <typename M>
    requires requires(M& m) { internal::Fields(m); }
  void operator()(M& message) {
    const auto fill = [this](auto&... field) { ((*this)(field), ...); };
    std::apply(fill, internal::Fields(message));
    if constexpr (requires { internal::AddedFields(message); }) {
      std::apply(fill, internal::AddedFields(message));
    }
  }

 private:
  Random& random_;
};

template <std::size_t index = 0>
Message DefaultMessage(std::size_t wanted) {
  if constexpr (index + 1 < std::variant_size_v<Message>) {
    if (index != wanted) return DefaultMessage<index + 1>(wanted);
  }
  return Message(std::in_place_index<index>);
}

inline Message RandomMessage(Random& random) {
  Message message = DefaultMessage(random.Below(std::variant_size_v<Message>));
  std::visit(RandomFiller(random), message);
  return message;
}

inline std::vector<std::byte> RandomBytes(Random& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes)
    b = static_cast<std::byte>(random.Next());
  return bytes;
}

// Gives the message the CRC of its payload, if it carries one.
inline void SetPayloadCrc(Message& message, std::uint32_t crc) {
  if (auto* reply = std::get_if<SampleReply>(&message)) reply->crc = crc;
  if (auto* put = std::get_if<Put>(&message)) put->crc = crc;
  if (auto* push = std::get_if<Push>(&message)) push->crc = crc;
}

}  // namespace optcache::wire
