#include "base/percent_encoding.h"

namespace optcache {
namespace {

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// All but unreserved characters and `also`.
std::string Encode(std::string_view text, char also) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (IsUnreserved(c) || c == also) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kHexDigits[byte >> 4U];
    encoded += kHexDigits[byte & 15U];
  }
  return encoded;
}

// Of a hexadecimal digit; above 15 for anything else.
unsigned ValueOf(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  return Encode(text, '-');
}

std::string PercentEncodePath(std::string_view path) {
  return Encode(path, '/');
}

Result<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const unsigned high = i + 2 < text.size() ? ValueOf(text[i + 1]) : 16;
    const unsigned low = i + 2 < text.size() ? ValueOf(text[i + 2]) : 16;
    if (high > 15 || low > 15) {
      return Error(Code::kInvalidArgument,
                   "a % that two hexadecimal digits do not follow; a % itself is %25");
    }
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string QueryString(const QueryFields& query) {
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text += '&';
    text += PercentEncode(name);
    text += '=';
    text += PercentEncode(value);
  }
  return text;
}

}  // namespace optcache
