#pragma once

// Whole decimal numbers in texts.

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace optcache {

// `text` as a whole number, at most `most`. Nullopt: it has something else than digits, or, of a
// signed number, a minus before them, or the number is too large or small.
template <std::integral Number>
std::optional<Number> ParseWholeNumber(std::string_view text,
                                       Number most = std::numeric_limits<Number>::max()) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number > most) return std::nullopt;
  return number;
}

}  // namespace optcache
