#include "net/http.h"

#include <algorithm>
#include <cctype>

#include "base/whole_number.h"

namespace optcache::net {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// What is not a valid escape stays as it is.
std::string Decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

}  // namespace

bool SameWithoutCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::optional<std::string_view> FindHeader(const HttpHeaders& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (SameWithoutCase(key, name)) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ContentLength(const HttpHeaders& headers) {
  return ParseWholeNumber<std::uint64_t>(FindHeader(headers, "Content-Length").value_or(""));
}

std::string_view HttpRequest::path() const {
  std::string_view rest = url;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    const std::size_t slash = rest.find('/', scheme + 3);
    rest = slash == std::string_view::npos ? "/" : rest.substr(slash);
  }
  return rest.substr(0, rest.find('?'));
}

std::optional<std::string> HttpRequest::query(std::string_view name) const {
  const std::size_t question = url.find('?');
  if (question == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(url).substr(question + 1);
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equals = pair.find('=');
    if (Decode(pair.substr(0, equals)) != name) continue;
    return equals == std::string_view::npos ? std::string() : Decode(pair.substr(equals + 1));
  }
  return std::nullopt;
}

HttpResponse HttpResponse::Text(int status, std::string body) {
  return {.status = status,
          .headers = {{"Content-Type", "text/plain; charset=utf-8"}},
          .body = std::move(body)};
}

HttpResponse HttpResponse::Json(int status, std::string body) {
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(body)};
}

}  // namespace optcache::net
