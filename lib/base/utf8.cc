#include "base/utf8.h"

namespace optcache {
namespace {

bool Continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U;
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

}  // namespace optcache
