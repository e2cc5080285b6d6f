#pragma once

// Frames as golden files have them: bytes in hexadecimal, 16 a line, the header on lines of its
// own.

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace optcache {

inline std::string Hex(ByteSpan bytes, std::size_t header = 16) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto value = std::to_integer<unsigned>(bytes[i]);
    text += kDigits[value / 16];
    text += kDigits[value % 16];
    const std::size_t in_part = i < header ? i : i - header;
    text += in_part % 16 == 15 || i + 1 == header || i + 1 == bytes.size() ? '\n' : ' ';
  }
  return text;
}

// The bytes of such a text.
inline std::vector<std::byte> Unhex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 3)
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace optcache
