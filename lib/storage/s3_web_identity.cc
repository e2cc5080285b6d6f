#include "storage/s3_web_identity.h"

#include <utility>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/files.h"
#include "base/percent_encoding.h"
#include "storage/internal/curl.h"
#include "storage/internal/key_files.h"
#include "storage/s3_error.h"

namespace optcache::storage {
namespace {

constexpr ByteCount kStsAnswerBytesMax = 256_KiB;

std::unexpected<Status> BadStsAnswer(std::string_view why) {
  return Error(Code::kDataLoss, fmt::format("the token service's answer: {}", why));
}

}  // namespace

Result<S3TemporaryKeys> ParseWebIdentityAnswer(std::string_view xml) {
  pugi::xml_document document;
  if (xml.size() > kStsAnswerBytesMax ||
      !document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8))
    return BadStsAnswer("it is no XML, or too long");
  const pugi::xml_node keys = document.child("AssumeRoleWithWebIdentityResponse")
                                  .child("AssumeRoleWithWebIdentityResult")
                                  .child("Credentials");
  if (!keys) return BadStsAnswer("there are no Credentials in it");
  S3TemporaryKeys out;
  out.credentials = {.access_key_id = keys.child_value("AccessKeyId"),
                     .secret_access_key = keys.child_value("SecretAccessKey"),
                     .session_token = keys.child_value("SessionToken")};
  const S3Credentials& c = out.credentials;
  if (!internal::IsKeyText(c.access_key_id) || !internal::IsKeyText(c.secret_access_key) ||
      !internal::IsKeyText(c.session_token))
    return BadStsAnswer("a part of the Credentials is missing, or is no key");
  ASSIGN_OR_RETURN(out.expires_unix_s, ParseUtcTime(keys.child_value("Expiration")));
  return out;
}

S3WebIdentity::S3WebIdentity(S3WebIdentityOptions options, const Clock& clock)
    : S3TemporaryKeySource(options.renewal, clock), options_(std::move(options)) {}

S3WebIdentity::~S3WebIdentity() {
  Shutdown();
}

void S3WebIdentity::Ask() {
  const Result<std::string> token = ReadToken(options_.token_file);
  if (!token) {
    token_expired_ = false;
    return Finish(Error(Code::kPermissionDenied,
                        fmt::format("the token of the web identity: {}", token.error().message())));
  }
  QueryFields form = {{"Action", "AssumeRoleWithWebIdentity"},
                      {"Version", "2011-06-15"},
                      {"RoleSessionName", options_.session_name},
                      {"WebIdentityToken", *token}};
  if (!options_.role_arn.empty()) form.emplace_back("RoleArn", options_.role_arn);
  Send({.method = internal::HttpRequest::Method::kPost,
        .url = options_.sts_endpoint + "/",
        .headers = {"Content-Type: application/x-www-form-urlencoded", "Expect:"},
        .body = QueryString(form),
        .ca_file = options_.ca_file,
        .deadline = RequestDeadline()},
       "keys from " + options_.sts_endpoint,
       [this](const internal::HttpResponse& /*response*/, std::string_view body) {
         token_expired_ = false;
         Finish(ParseWebIdentityAnswer(body));
       });
}

Result<S3TemporaryKeys> S3WebIdentity::Refused(const internal::HttpResponse& response,
                                               std::string_view what) const {
  const S3Error error = ParseS3Error(response.error_body);
  token_expired_ = SaysThatKeysExpired(error);
  if (token_expired_) {
    return Error(Code::kPermissionDenied,
                 fmt::format("{}: HTTP {}: {}: the token in {} has expired: it is read again for "
                             "each request, so put a newer one there",
                             what, response.http_status, error.code, options_.token_file));
  }
  const Status status = S3Status({.http_status = response.http_status, .error = error}, what);
  // What the service calls wrong with the token is no fault of the request's form.
  const bool refused = status.code() == Code::kInvalidArgument;
  return Error(refused ? Code::kPermissionDenied : status.code(), status.message());
}

}  // namespace optcache::storage
