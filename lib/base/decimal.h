#pragma once

// Decimal numbers in texts.

#include <optional>
#include <string_view>

namespace optcache {

// All of `text` as a number: "0.5", "-3" or "1e3". Nullopt: it is something else, also infinity,
// NaN, a blank or a plus before the number, or the number is too large or small for a double.
std::optional<double> ParseDecimal(std::string_view text);

}  // namespace optcache
