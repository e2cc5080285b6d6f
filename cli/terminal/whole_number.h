#pragma once

// Whole numbers on the command line. CLI11 reads -3 as an unsigned number near 2^64, and what has
// more digits than a number can have as the largest one.

#include <limits>
#include <string>

#include "base/whole_number.h"

namespace optcache::cli {

// For CLI::Option::check: empty, or why `text` is not a decimal number of that type from `least` to
// `most`.
template <typename Number>
std::string CheckWholeNumber(const std::string& text, Number least, Number most) {
  const auto value = ParseWholeNumber<Number>(text, most);
  if (value && *value >= least) return "";
  return "'" + text + "': it takes a whole number from " + std::to_string(least) + " to " +
         std::to_string(most);
}

template <typename Number>
auto WholeNumber(Number least = std::numeric_limits<Number>::min(),
                 Number most = std::numeric_limits<Number>::max()) {
  return [least, most](const std::string& text) {
    return CheckWholeNumber<Number>(text, least, most);
  };
}

}  // namespace optcache::cli
