#include "kube/api_error.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/whole_number.h"

namespace optcache::kube {
namespace {

constexpr std::size_t kMaxQuotedBytes = 512;
constexpr std::chrono::seconds kMaxRetryAfter = std::chrono::minutes(5);

Code CodeOf(int http_status) {
  switch (http_status) {
    case 401:
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 409:
    case 410:
      return Code::kConflict;
    case 408:
    case 504:
      return Code::kDeadlineExceeded;
    case 429:
      return Code::kResourceExhausted;
    default:
      return http_status >= 400 && http_status < 500 ? Code::kInvalidArgument : Code::kUnavailable;
  }
}

// A number of seconds; the API server sends no dates.
std::optional<Duration> ParseSeconds(std::string_view text) {
  const auto seconds = ParseWholeNumber<std::int64_t>(text);
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::min<std::chrono::seconds>(std::chrono::seconds(*seconds), kMaxRetryAfter);
}

bool SaysNamespaceTerminating(const Json& status) {
  const Json& causes = Items(status, "/details/causes");
  return std::any_of(causes.begin(), causes.end(), [](const Json& cause) {
    return TextAt(cause, "/reason") == "NamespaceTerminating";
  });
}

std::string MessageOf(const Json& status, std::string_view body) {
  std::string message = TextAt(status, "/message");
  if (!message.empty()) return message;
  if (body.empty()) return "no explanation";
  if (body.size() <= kMaxQuotedBytes) return std::string(body);
  return std::string(body.substr(0, kMaxQuotedBytes)) + "…";
}

ApiError FromStatus(int http_status, const Json& status, std::string_view body,
                    std::string_view what) {
  ApiError error{
      .status = Status(CodeOf(http_status),
                       fmt::format("{}: {} ({})", what, MessageOf(status, body), http_status)),
      .http_status = http_status,
      .reason = TextAt(status, "/reason")};
  if (const auto seconds = NumberAt(status, "/details/retryAfterSeconds")) {
    error.retry_after = ParseSeconds(std::to_string(*seconds));
  }
  error.namespace_missing = http_status == 404 && TextAt(status, "/details/kind") == "namespaces";
  error.namespace_terminating = http_status == 403 && SaysNamespaceTerminating(status);
  return error;
}

}  // namespace

bool ApiError::transient() const {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded ||
         status.code() == Code::kResourceExhausted || conflict();
}

ApiError MakeApiError(Status transport) {
  return {.status = std::move(transport)};
}

ApiError MakeApiError(int http_status, const net::HttpHeaders& headers, std::string_view body,
                      std::string_view what) {
  ApiError error =
      FromStatus(http_status, Json::parse(body, nullptr, /*allow_exceptions=*/false), body, what);
  if (const auto header = net::FindHeader(headers, "Retry-After")) {
    error.retry_after = ParseSeconds(*header);
  }
  return error;
}

ApiError MakeApiError(const Json& api_status, std::string_view what) {
  constexpr int kServerError = 500;
  const std::int64_t code = NumberAt(api_status, "/code").value_or(kServerError);
  const bool known = code >= 400 && code < 600;
  return FromStatus(known ? static_cast<int>(code) : kServerError, api_status, {}, what);
}

}  // namespace optcache::kube
