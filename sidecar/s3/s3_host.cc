#include "sidecar/s3/s3_host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"
#include "base/whole_number.h"

namespace optcache::sidecar {
namespace {

constexpr std::string_view kLoopbackName = "localhost";
constexpr std::string_view kBelowLoopback = ".localhost";
constexpr std::size_t kShownBytes = 100;

// Takes ":PORT" off the end; false if what stands there is no port.
bool TakePort(std::string_view& host) {
  const std::size_t colon = host.rfind(':');
  const std::size_t bracket = host.rfind(']');
  if (colon == std::string_view::npos) return true;
  if (bracket != std::string_view::npos && bracket > colon) return true;
  const std::string_view port = host.substr(colon + 1);
  host = host.substr(0, colon);
  return port.empty() || ParseWholeNumber<std::uint16_t>(port);
}

bool IsLoopbackV4(const std::string& host) {
  in_addr address = {};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24U == 127;
}

std::unexpected<S3Error> NotALoopback(std::string_view host) {
  return std::unexpected(S3Error{
      .status = 403,
      .code = "AccessDenied",
      .message = fmt::format("This endpoint answers to names of the loopback alone, and Host is "
                             "'{}'. Otherwise a web page could read it through your browser. "
                             "Write localhost or 127.0.0.1 into the address",
                             Visible(CutText(std::string(host), kShownBytes)))});
}

}  // namespace

std::expected<std::string, S3Error> BucketOfHost(const net::HttpHeaders& headers) {
  const auto hosts = std::ranges::count_if(
      headers, [](const auto& header) { return net::SameWithoutCase(header.first, "Host"); });
  if (hosts != 1) {
    return std::unexpected(S3Error{
        .status = 400,
        .code = "InvalidRequest",
        .message = "A request has one header Host, and this one has " + std::to_string(hosts)});
  }
  if (net::FindHeader(headers, "Sec-Fetch-Site") == "cross-site") {
    return std::unexpected(
        S3Error{.status = 403,
                .code = "AccessDenied",
                .message = "This endpoint does not answer a browser that asks on behalf of a page "
                           "of another site (Sec-Fetch-Site)"});
  }
  const std::string_view whole = *net::FindHeader(headers, "Host");
  std::string_view host = whole;
  if (!TakePort(host)) return NotALoopback(whole);
  if (host == "[::1]" || IsLoopbackV4(std::string(host))) return "";
  if (net::SameWithoutCase(host, kLoopbackName)) return "";
  if (host.size() <= kBelowLoopback.size()) return NotALoopback(whole);
  const std::string_view bucket = host.substr(0, host.size() - kBelowLoopback.size());
  if (!net::SameWithoutCase(host.substr(bucket.size()), kBelowLoopback)) return NotALoopback(whole);
  return std::string(bucket);
}

}  // namespace optcache::sidecar
