#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wire/frame.h"
#include "wire/internal/fields.h"

namespace optcache::wire::internal {

// Reads values from a body that may be hostile. The first thing wrong is kept in error(); from then
// on every Read is false and leaves its argument alone. A value with one owner.
class BodyReader {
 public:
  explicit BodyReader(ByteSpan body) : rest_(body) {}

  const char* error() const { return error_; }  // null: none
  std::size_t remaining() const { return rest_.size(); }

  template <typename T>
    requires std::is_integral_v<T>
  bool Read(T& value) {
    if (error_ != nullptr || rest_.size() < sizeof(T)) return Fail("the body ends too early");
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bits |= std::to_integer<std::uint64_t>(rest_[i]) << (8 * i);
    }
    rest_ = rest_.subspan(sizeof(T));
    if constexpr (std::is_same_v<T, bool>) {
      if (bits > 1) return Fail("a truth value is neither 0 nor 1");
      value = bits == 1;
    } else {
      value = static_cast<T>(bits);
    }
    return true;
  }
  template <typename E>
    requires std::is_enum_v<E>
  bool Read(E& value) {
    std::uint8_t number = 0;
    if (!Read(number)) return false;
    const auto [first, last] = kRange<E>;
    if (number < static_cast<std::uint8_t>(first) || number > static_cast<std::uint8_t>(last)) {
      return Fail("an enumeration has an unknown value");
    }
    value = static_cast<E>(number);
    return true;
  }
  // Codes may be added later; one that is not known here is an internal error of the sender.
  bool Read(Code& value) {
    std::uint8_t number = 0;
    if (!Read(number)) return false;
    value = number <= static_cast<std::uint8_t>(Code::kInternal) ? static_cast<Code>(number)
                                                                 : Code::kInternal;
    return true;
  }
  bool Read(std::string& text) {
    std::uint16_t length = 0;
    if (!Read(length)) return false;
    if (length > kMaxStringBytes) return Fail("a string is longer than 4096 bytes");
    if (length > rest_.size()) return Fail("the body ends within a string");
    text = AsText(rest_.first(length));
    rest_ = rest_.subspan(length);
    return true;
  }
  bool Read(std::vector<std::byte>& bytes) {
    std::uint32_t length = 0;
    if (!Read(length)) return false;
    if (length > kMaxPartBytes) return Fail("a part has more than 524288 bytes");
    if (length > rest_.size()) return Fail("the body ends within a part");
    bytes.assign(rest_.begin(), rest_.begin() + length);
    rest_ = rest_.subspan(length);
    return true;
  }
  template <typename T>
  bool Read(std::vector<T>& items) {
    std::uint32_t count = 0;
    if (!Read(count)) return false;
    if (count > kMaxItems) return Fail("a list has more than 4096 items");
    if (count > rest_.size()) return Fail("the body ends within a list");
    items.resize(count);
    for (T& item : items) {
      if (!Read(item)) return false;
    }
    return true;
  }
  template <typename M>
    requires requires(M& m) { Fields(m); } && (!requires(M& m) { AddedFields(m); })
  bool Read(M& message) {
    return ReadAll(Fields(message));
  }
  // A message that may have grown: what an older peer does not send keeps its value.
  template <typename M>
    requires requires(M& m) { AddedFields(m); }
  bool Read(M& message) {
    return ReadAll(Fields(message)) && (rest_.empty() || ReadAll(AddedFields(message)));
  }

 private:
  template <typename... T>
  bool ReadAll(std::tuple<T&...> fields) {
    return std::apply([this](auto&... field) { return (this->Read(field) && ...); }, fields);
  }
  bool Fail(const char* error) {
    if (error_ == nullptr) error_ = error;
    return false;
  }

  ByteSpan rest_;
  const char* error_ = nullptr;
};

}  // namespace optcache::wire::internal
