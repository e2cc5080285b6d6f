#include "base/utf8.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache {
namespace {

bool Continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
}

// Of one character in UTF-8. U+0080 to U+00BF end in their number.
bool IsControl(std::string_view character) {
  const auto last = static_cast<unsigned char>(character.back());
  if (character.size() == 2) return character[0] == '\xc2' && last < 0xa0;
  return character.size() == 1 && (last < 0x20 || last == 0x7f);
}

}  // namespace

std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto follows = [&](std::size_t i) { return i < text.size() && Continues(text[i]); };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return follows(1) ? 2 : 0;
  const unsigned second = byte(1);
  if (first < 0xf0) {
    const bool overlong = first == 0xe0 && second < 0xa0;
    const bool surrogate = first == 0xed && second >= 0xa0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  const bool overlong = first == 0xf0 && second < 0x90;
  const bool beyond = first > 0xf4 || (first == 0xf4 && second >= 0x90);
  return follows(1) && follows(2) && follows(3) && !overlong && !beyond ? 4 : 0;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string CutText(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && Continues(text[limit]))
    --limit;
  text.resize(limit);
  return text;
}

std::string Visible(std::string_view text, std::string_view kept) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    text.remove_prefix(character.size());
    const auto last = static_cast<unsigned char>(character.back());
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", last);
    } else if (IsControl(character) && !kept.contains(character)) {
      shown += fmt::format("\\u{:04x}", last);
    } else {
      shown += character;
    }
  }
  return shown;
}

}  // namespace optcache
