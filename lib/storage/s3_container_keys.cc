#include "storage/s3_container_keys.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "storage/internal/curl.h"
#include "storage/s3_address.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kEcsHost = "169.254.170.2";
constexpr std::string_view kFullUri = "AWS_CONTAINER_CREDENTIALS_FULL_URI";

bool IsUriText(std::string_view text) {
  return text.size() <= 2048 &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

// The host of "http://host:port/path", brackets included; empty if there is another form.
std::string_view HostOf(std::string_view url, std::string_view scheme) {
  if (!url.starts_with(scheme) || !IsUriText(url)) return {};
  url.remove_prefix(scheme.size());
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (authority.contains('@')) return {};
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool IsKeysHost(std::string_view host) {
  return IsLoopbackHost(host) || host == kEcsHost || host == "169.254.170.23" ||
         host == "[fd00:ec2::23]";
}

}  // namespace

Result<std::optional<S3ContainerKeysOptions>> ContainerKeysOf(const Environment& environment) {
  const std::optional<std::string> relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::optional<std::string> full = environment(kFullUri.data());
  S3ContainerKeysOptions options;
  if (relative) {
    if (!relative->starts_with('/') || !IsUriText(*relative)) {
      return Error(
          Code::kInvalidArgument,
          "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with a slash, or is none");
    }
    options.url = fmt::format("http://{}{}", kEcsHost, *relative);
  } else if (full) {
    if (HostOf(*full, "https://").empty() && !IsKeysHost(HostOf(*full, "http://"))) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} is neither https:// nor http:// of this machine (127.0.0.1, "
                               "[::1], 169.254.170.2, 169.254.170.23, [fd00:ec2::23])",
                               kFullUri));
    }
    options.url = *full;
  } else {
    return std::nullopt;
  }
  options.token_file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").value_or("");
  options.token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN").value_or("");
  const bool line =
      std::ranges::all_of(options.token, [](unsigned char c) { return c >= ' ' && c < 0x7f; });
  if (!line) {
    return Error(Code::kInvalidArgument,
                 "AWS_CONTAINER_AUTHORIZATION_TOKEN is not one line of text");
  }
  return options;
}

S3ContainerKeys::S3ContainerKeys(S3ContainerKeysOptions options, const Clock& clock)
    : S3TemporaryKeySource(options.renewal, clock), options_(std::move(options)) {}

S3ContainerKeys::~S3ContainerKeys() {
  Shutdown();
}

void S3ContainerKeys::Ask() {
  std::string token = options_.token;
  if (!options_.token_file.empty()) {
    Result<std::string> read = ReadToken(options_.token_file);
    if (!read) {
      return Finish(Error(Code::kPermissionDenied,
                          "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: " + read.error().message()));
    }
    token = *std::move(read);
  }
  internal::HttpRequest request = {.url = options_.url,
                                   .headers = {"Accept: application/json"},
                                   .uses_proxies = false,
                                   .deadline = RequestDeadline()};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  Send(std::move(request), "keys of this container from " + options_.url,
       [this](const internal::HttpResponse& /*response*/, std::string_view body) {
         Finish(ParseKeyAnswer(body));
       });
}

}  // namespace optcache::storage
