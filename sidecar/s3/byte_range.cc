#include "sidecar/s3/byte_range.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/whole_number.h"
#include "net/http.h"

namespace optcache::sidecar {
namespace {

constexpr std::string_view kUnit = "bytes=";

// Nothing if it is anything else than digits. What has more than 64 bits is beyond every object, as
// the greatest number is.
std::optional<std::uint64_t> NumberOf(std::string_view digits) {
  const bool only_digits = digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (digits.empty() || !only_digits) return std::nullopt;
  return ParseWholeNumber<std::uint64_t>(digits).value_or(
      std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

RequestedRange ParseRange(std::optional<std::string_view> header, ByteCount size) {
  const RequestedRange whole{.bytes = {.first = 0, .length = size}};
  if (!header || !net::SameWithoutCase(header->substr(0, kUnit.size()), kUnit)) return whole;
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
