#pragma once

// Names in a message, of which there may be too many for it.

#include <cstddef>
#include <string>
#include <vector>

namespace optcache {

// "a, b, c, d, e and 2 more": the first `shown` of the names.
inline std::string SomeOf(const std::vector<std::string>& names, std::size_t shown = 5) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < shown; ++i)
    text += (i > 0 ? ", " : "") + names[i];
  if (names.size() > shown) text += " and " + std::to_string(names.size() - shown) + " more";
  return text;
}

}  // namespace optcache
