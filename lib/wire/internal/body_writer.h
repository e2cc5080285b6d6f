#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "wire/frame.h"
#include "wire/internal/fields.h"

namespace optcache::wire::internal {

// Appends values, little endian, to a buffer. What is over its limit is left out; error() says so,
// and the body is of no use. A value with one owner.
class BodyWriter {
 public:
  explicit BodyWriter(std::vector<std::byte>& out) : out_(out) {}

  const char* error() const { return error_; }  // null: none

  template <typename T>
    requires std::is_integral_v<T>
  void Write(T value) {
    auto bits = static_cast<
        std::make_unsigned_t<std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(bits) >> (8 * i)) & 0xffU));
    }
  }
  template <typename E>
    requires std::is_enum_v<E>
  void Write(E value) {
    Write(static_cast<std::uint8_t>(value));
  }
  void Write(const std::string& text) {
    const std::size_t length = std::min(text.size(), kMaxStringBytes);
    Write(static_cast<std::uint16_t>(length));
    const ByteSpan bytes = AsBytes(text).first(length);
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void Write(const std::vector<std::byte>& bytes) {
    if (bytes.size() > kMaxPartBytes) return Fail("a part has more than 524288 bytes");
    Write(static_cast<std::uint32_t>(bytes.size()));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  template <typename T>
  void Write(const std::vector<T>& items) {
    if (items.size() > kMaxItems) return Fail("a list has more than 4096 items");
    Write(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items)
      Write(item);
  }
  template <typename M>
    requires requires(const M& m) { Fields(m); }
  void Write(const M& message) {
    const auto write_all = [this](const auto&... field) { (this->Write(field), ...); };
    std::apply(write_all, Fields(message));
    if constexpr (requires { AddedFields(message); }) std::apply(write_all, AddedFields(message));
  }

 private:
  void Fail(const char* error) {
    if (error_ == nullptr) error_ = error;
  }

  std::vector<std::byte>& out_;
  const char* error_ = nullptr;
};

}  // namespace optcache::wire::internal
