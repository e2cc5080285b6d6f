#pragma once

// Files of numpy for tests.

#include <string>
#include <string_view>

namespace optcache {

// The header as numpy pads it: what stands before the data is a multiple of 64 bytes.
inline std::string NpyHeader(std::string_view dict, int major = 1) {
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  std::string text(dict);
  while ((8 + length_bytes + text.size() + 1) % 64 != 0)
    text += ' ';
  text += '\n';
  std::string header = "\x93NUMPY";
  header += static_cast<char>(major);
  header += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i)
    header += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return header + text;
}

}  // namespace optcache
