#include "sidecar/byte_range.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace optcache::sidecar {
namespace {

constexpr std::string_view kUnit = "bytes=";

// Nothing if it is anything else than digits, or more than 64 bits.
std::optional<std::uint64_t> NumberOf(std::string_view digits) {
  std::uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

}  // namespace

RequestedRange ParseRange(std::optional<std::string_view> header, ByteCount size) {
  const RequestedRange whole{.bytes = {.first = 0, .length = size}};
  if (!header || !header->starts_with(kUnit)) return whole;
  const std::string_view range = header->substr(kUnit.size());
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return whole;
  const auto first = NumberOf(range.substr(0, dash));
  const auto last = NumberOf(range.substr(dash + 1));
  const bool to_the_end = dash + 1 == range.size();
  if (dash == 0 && last) {  // the last bytes
    const ByteCount length = std::min(*last, size);
    if (length == 0) return {.kind = RangeKind::kUnsatisfiable, .bytes = {}};
    return {.kind = RangeKind::kPart, .bytes = {.first = size - length, .length = length}};
  }
  if (!first || (!last && !to_the_end) || (last && *last < *first)) return whole;
  if (*first >= size) return {.kind = RangeKind::kUnsatisfiable, .bytes = {}};
  const ByteCount end = last && *last < size ? *last + 1 : size;
  return {.kind = RangeKind::kPart, .bytes = {.first = *first, .length = end - *first}};
}

}  // namespace optcache::sidecar
