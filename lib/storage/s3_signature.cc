// Signs by AWS Signature Version 4, step by step as its specification has it.
//
//   CanonicalRequest ─► SHA-256 ─► StringToSign ─► HMAC ─► Authorization
//                                     key: of secret, date, region, service
//
// The idea: both sides compute the same text from a request, so its order must not depend on ours:
// headers are sorted by name, query fields after encoding, and values have their blanks folded. A
// path is signed as it is sent, since S3 does not normalise it. All headers that SignedHeaders is
// given are signed; what proxies may change is added by the caller afterwards. A request without a
// key is not signed at all.

#include "storage/s3_signature.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/bytes.h"
#include "dataset/digest.h"

namespace optcache::storage {
namespace {

using dataset::Digest;

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr size_t kHashBlockBytes = 64;

// RFC 2104.
Digest HmacSha256(ByteSpan key, std::string_view text) {
  std::array<std::byte, kHashBlockBytes> block = {};
  const Digest short_key = key.size() > block.size() ? dataset::Sha256Of(key) : Digest{};
  if (key.size() > block.size()) key = short_key;
  std::ranges::copy(key, block.begin());
  const auto hash = [&](std::byte mask, ByteSpan bytes) {
    std::array<std::byte, kHashBlockBytes> masked = block;
    for (std::byte& b : masked)
      b ^= mask;
    dataset::Sha256 sum;
    sum.Update(masked);
    sum.Update(bytes);
    return sum.Finish();
  };
  return hash(std::byte{0x5c}, hash(std::byte{0x36}, AsBytes(text)));
}

std::vector<std::pair<std::string, std::string>> Sorted(
    std::vector<std::pair<std::string, std::string>> fields) {
  std::ranges::sort(fields);
  return fields;
}

// Sorted after encoding: an encoded character sorts as '%', not as itself.
std::string CanonicalQuery(const QueryFields& query) {
  QueryFields encoded;
  encoded.reserve(query.size());
  for (const auto& [name, value] : query)
    encoded.emplace_back(PercentEncode(name), PercentEncode(value));
  std::string text;
  for (const auto& [name, value] : Sorted(std::move(encoded))) {
    if (!text.empty()) text += '&';
    text.append(name).append("=").append(value);
  }
  return text;
}

// Without blanks at the ends, and one for several within.
std::string Trimmed(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c != ' ') {
      text += c;
    } else if (!text.empty() && !text.ends_with(' ')) {
      text += ' ';
    }
  }
  if (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string SignedHeaderNames(const SignedRequest& request) {
  std::string names;
  for (const auto& [name, value] : Sorted(request.headers)) {
    if (!names.empty()) names += ';';
    names += name;
  }
  return names;
}

std::string ScopeText(const SigningScope& scope) {
  return fmt::format("{}/{}/{}/aws4_request", scope.date_time.substr(0, 8), scope.region,
                     scope.service);
}

}  // namespace

std::string CanonicalRequest(const SignedRequest& request) {
  std::string text =
      fmt::format("{}\n{}\n{}\n", request.method, request.path, CanonicalQuery(request.query));
  for (const auto& [name, value] : Sorted(request.headers))
    text += fmt::format("{}:{}\n", name, Trimmed(value));
  return text.append("\n")
      .append(SignedHeaderNames(request))
      .append("\n")
      .append(request.payload_hash);
}

std::string StringToSign(const SignedRequest& request, const SigningScope& scope) {
  return fmt::format("{}\n{}\n{}\n{}", kAlgorithm, scope.date_time, ScopeText(scope),
                     dataset::ToHex(dataset::Sha256Of(AsBytes(CanonicalRequest(request)))));
}

std::string Authorization(const SignedRequest& request, const SigningScope& scope,
                          const S3Credentials& credentials) {
  Digest key =
      HmacSha256(AsBytes("AWS4" + credentials.secret_access_key), scope.date_time.substr(0, 8));
  for (const std::string_view part :
       {scope.region, scope.service, std::string_view("aws4_request")})
    key = HmacSha256(key, part);
  const Digest signature = HmacSha256(key, StringToSign(request, scope));
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm,
                     credentials.access_key_id, ScopeText(scope), SignedHeaderNames(request),
                     dataset::ToHex(signature));
}

std::string AmazonDateTime(double unix_seconds) {
  const std::chrono::sys_seconds time{
      std::chrono::seconds(static_cast<std::int64_t>(unix_seconds))};
  return fmt::format("{:%Y%m%dT%H%M%SZ}", time);
}

std::vector<std::string> SignedHeaders(const S3RequestLine& line,
                                       std::vector<std::pair<std::string, std::string>> headers,
                                       std::string_view region, double unix_seconds,
                                       const S3Credentials& credentials) {
  std::vector<std::string> sent;
  if (!credentials.anonymous()) {
    headers.emplace_back("x-amz-date", AmazonDateTime(unix_seconds));
    headers.emplace_back("x-amz-content-sha256", kEmptyPayloadHash);
    if (!credentials.session_token.empty())
      headers.emplace_back("x-amz-security-token", credentials.session_token);
  }
  sent.reserve(headers.size() + 1);
  for (const auto& [name, value] : headers)
    sent.push_back(fmt::format("{}: {}", name, value));
  if (credentials.anonymous()) return sent;
  const std::string date_time = AmazonDateTime(unix_seconds);
  headers.emplace_back("host", line.host);
  const SignedRequest request = {.method = line.method,
                                 .path = line.path,
                                 .query = line.query,
                                 .headers = std::move(headers),
                                 .payload_hash = kEmptyPayloadHash};
  sent.push_back("Authorization: " +
                 Authorization(request, {.date_time = date_time, .region = region}, credentials));
  return sent;
}

}  // namespace optcache::storage
