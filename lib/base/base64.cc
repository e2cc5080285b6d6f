#include "base/base64.h"

#include <array>
#include <cstdint>

namespace optcache {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> MakeValues() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values.at(static_cast<unsigned char>(kDigits[i])) = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = MakeValues();

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : bytes) {
    bits = (bits << 8U) | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6)
      text.push_back(kDigits[(bits >> (held - 6)) & 63U]);
  }
  if (held > 0) text.push_back(kDigits[(bits << (6 - held)) & 63U]);
  while (text.size() % 4 != 0)
    text.push_back('=');
  return text;
}

Result<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return Error(Code::kInvalidArgument, "base64 of a wrong length");
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding)
    text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues.at(static_cast<unsigned char>(c));
    if (value == kNoDigit) return Error(Code::kInvalidArgument, "not base64");
    bits = (bits << 6U) | value;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<char>((bits >> held) & 0xffU));
    }
  }
  if (held >= 6 || (bits & ((1U << held) - 1)) != 0) {
    return Error(Code::kInvalidArgument, "base64 with a wrong end");
  }
  return bytes;
}

}  // namespace optcache
