#pragma once

// Byte counts and spans of bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache {

using ByteCount = std::uint64_t;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

inline constexpr ByteCount operator""_KiB(unsigned long long n) {
  return n << 10U;
}
inline constexpr ByteCount operator""_MiB(unsigned long long n) {
  return n << 20U;
}
inline constexpr ByteCount operator""_GiB(unsigned long long n) {
  return n << 30U;
}

inline ByteSpan AsBytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A Kubernetes quantity of bytes: "500Gi", "1.5M", "1024". kInvalidArgument names the text and
// what is allowed.
Result<ByteCount> ParseQuantity(std::string_view text);

// "1.5 GiB": for people, three digits.
std::string FormatBytes(ByteCount bytes);
// The same of a difference: "-1.5 GiB".
std::string FormatSignedBytes(std::int64_t bytes);

}  // namespace optcache
