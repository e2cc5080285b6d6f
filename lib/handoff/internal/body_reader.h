#pragma once

// The fields of a frame's body, one after the other.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "handoff/layout.h"

namespace optcache::handoff::internal {

template <typename T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

// Takes fields off the front of a body. After the first that is missing or wrong all are zero.
class BodyReader {
 public:
  explicit BodyReader(ByteSpan body) : rest_(body) {}

  template <Plain T>
  T Take() {
    T value{};
    if (rest_.size() < sizeof(T)) {
      Fail("it ends early");
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  bool TakeBool() {
    const auto value = Take<std::uint8_t>();
    if (value > 1) Fail("a truth value is neither 0 nor 1");
    return value == 1;
  }

  std::string TakeString() {
    const auto length = Take<std::uint16_t>();
    if (length > kMaxStringBytes) Fail("a string is too long");
    if (length > rest_.size()) Fail("it ends early");
    if (!error_.empty()) return {};
    std::string text(AsText(rest_.first(length)));
    rest_ = rest_.subspan(length);
    return text;
  }

  // All that is left.
  template <Plain T>
  std::vector<T> TakeList(std::size_t max_items) {
    if (rest_.size() % sizeof(T) != 0) Fail("its list ends within an item");
    if (rest_.size() / sizeof(T) > max_items) Fail("its list is too long");
    if (!error_.empty()) return {};
    std::vector<T> items(rest_.size() / sizeof(T));
    if (!items.empty()) std::memcpy(items.data(), rest_.data(), rest_.size());
    rest_ = {};
    return items;
  }

  void AllowMore() { rest_ = {}; }
  bool more() const { return !rest_.empty(); }

  Status Finish(std::string_view message) {
    if (!rest_.empty()) Fail("it goes on after its last field");
    if (error_.empty()) return OkStatus();
    return {Code::kInvalidArgument, std::string(message) + ": " + error_};
  }

 private:
  void Fail(std::string_view what) {
    if (error_.empty()) error_ = what;
    rest_ = {};
  }

  ByteSpan rest_;
  std::string error_;
};

}  // namespace optcache::handoff::internal
