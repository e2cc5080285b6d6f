#include "storage/s3_instance_keys.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "base/percent_encoding.h"
#include "storage/internal/curl.h"
#include "storage/internal/key_files.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kRolePath = "/latest/meta-data/iam/security-credentials/";
constexpr const char* kVendorFile = "/sys/class/dmi/id/sys_vendor";
constexpr double kNoRoleSeconds = 300;

std::string_view FirstWord(std::string_view text) {
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

std::string MachineVendor() {
  const Result<std::string> vendor = ReadFile(kVendorFile, 4_KiB);
  return vendor ? std::string(FirstWord(*vendor)) : "";
}

Result<std::optional<S3InstanceKeysOptions>> InstanceKeysOf(const Environment& environment,
                                                            std::string_view vendor) {
  std::string disabled = environment("AWS_EC2_METADATA_DISABLED").value_or("");
  std::ranges::transform(disabled, disabled.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::optional<std::string> endpoint = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const bool asked = disabled == "false" || endpoint.has_value();
  const bool own = vendor == "Amazon EC2" && !environment("KUBERNETES_SERVICE_HOST");
  if (disabled == "true" || !(asked || own)) return std::nullopt;
  S3InstanceKeysOptions options;
  if (endpoint) {
    options.endpoint = *endpoint;
    while (options.endpoint.ends_with('/'))
      options.endpoint.pop_back();
    if (!options.endpoint.starts_with("http://") || !internal::IsKeyText(options.endpoint)) {
      return Error(Code::kInvalidArgument,
                   "AWS_EC2_METADATA_SERVICE_ENDPOINT does not begin with http://, or is none");
    }
  }
  return options;
}

S3InstanceKeys::S3InstanceKeys(S3InstanceKeysOptions options, const Clock& clock)
    : S3TemporaryKeySource(options.renewal, clock), options_(std::move(options)) {}

S3InstanceKeys::~S3InstanceKeys() {
  Shutdown();
}

std::string S3InstanceKeys::What() const {
  return fmt::format(
      "keys of this machine from {} (AWS_EC2_METADATA_DISABLED=true goes without them)",
      options_.endpoint);
}

void S3InstanceKeys::Ask() {
  Send({.method = internal::HttpRequest::Method::kPut,
        .url = options_.endpoint + "/latest/api/token",
        .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 60", "Content-Type:", "Expect:"},
        .uses_proxies = false,
        .deadline = RequestDeadline()},
       What(), [this](const internal::HttpResponse& /*response*/, std::string_view body) {
         const std::string_view token = FirstWord(body);
         if (!internal::IsKeyText(token))
           return Finish(Error(Code::kDataLoss, What() + ": what came is no token"));
         AskForRole(std::string(token));
       });
}

void S3InstanceKeys::AskForRole(std::string token) {
  internal::HttpRequest request = {.url = fmt::format("{}{}", options_.endpoint, kRolePath),
                                   .headers = {"X-aws-ec2-metadata-token: " + token},
                                   .uses_proxies = false,
                                   .deadline = RequestDeadline()};
  Send(std::move(request), What(),
       [this, token = std::move(token)](const internal::HttpResponse& /*response*/,
                                        std::string_view body) {
         const std::string_view role = FirstWord(body);
         if (!internal::IsKeyText(role) || role.contains('/'))
           return Finish(Error(Code::kDataLoss, What() + ": what came is no name of a role"));
         AskForKeys(token, role);
       });
}

void S3InstanceKeys::AskForKeys(const std::string& token, std::string_view role) {
  Send({.url = fmt::format("{}{}{}", options_.endpoint, kRolePath, PercentEncode(role)),
        .headers = {"X-aws-ec2-metadata-token: " + token},
        .uses_proxies = false,
        .deadline = RequestDeadline()},
       What(), [this](const internal::HttpResponse& /*response*/, std::string_view body) {
         Finish(ParseKeyAnswer(body));
       });
}

Result<S3TemporaryKeys> S3InstanceKeys::Refused(const internal::HttpResponse& response,
                                                std::string_view what) const {
  if (response.http_status == 404)
    return S3TemporaryKeys{.credentials = {}, .expires_unix_s = UnixSeconds() + kNoRoleSeconds};
  return S3TemporaryKeySource::Refused(response, what);
}

}  // namespace optcache::storage
