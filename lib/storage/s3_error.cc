// Says what a refusal of S3 means: a code for the caller, and advice for people.
//
// The idea: servers say why in a word ("NoSuchKey"), so a table maps words to codes and advice. A
// HEAD has no body, and some servers use other words: then the status of HTTP decides. A hint at
// another region goes before both, since the server may report it as any of several errors.
//
// Invariant: of a body only code, message and region are taken, as one line of readable text with a
// limit. Key ids and signatures, which servers repeat, are left behind.

#include "storage/s3_error.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/utf8.h"
#include "storage/object_store.h"

namespace optcache::storage {
namespace {

constexpr size_t kMessageBytesMax = 300;
constexpr size_t kWordBytesMax = 64;  // of a code or a region

struct KnownS3Error {
  std::string_view name;
  Code code;
  std::string_view advice;  // after the server's own words
};

constexpr std::string_view kCustomerKeyAdvice =
    "give sseCustomerKey if objects are encrypted with a key of yours (SSE-C), and else none";

constexpr std::string_view kExpiredToken = "ExpiredToken";
constexpr std::string_view kExpiredTokenException = "ExpiredTokenException";  // as STS has it
constexpr std::string_view kTokenRefreshRequired = "TokenRefreshRequired";
constexpr std::string_view kExpiredAdvice =
    "the session token has expired: put newer keys where these come from";

constexpr std::string_view kChangedAdvice = "the object changed since the manifest was made";

constexpr std::string_view kNotKnownAdvice =
    "the server does not know this request: it has to know ListObjectsV2, GetObject and "
    "HeadObject, and SSE-C if you give sseCustomerKey";

constexpr std::array kKnownS3Errors = {
    KnownS3Error{"NoSuchKey", Code::kNotFound, "no such object"},
    KnownS3Error{"NoSuchBucket", Code::kNotFound,
                 "check the bucket's name and the endpoint of the source"},
    KnownS3Error{"AccessDenied", Code::kPermissionDenied,
                 "the keys, or requests without keys, need s3:GetObject and s3:ListBucket; where "
                 "the bucket's owner has requesters pay, say so with requester-pays; where "
                 "objects are encrypted with a key of yours (SSE-C), it may be another one"},
    KnownS3Error{"AllAccessDisabled", Code::kPermissionDenied, "all access to it is disabled"},
    KnownS3Error{"InvalidAccessKeyId", Code::kPermissionDenied,
                 "check the access key ID, and that it belongs to this endpoint"},
    // As versitygw has it, with status 404.
    KnownS3Error{"XAdminUserNotFound", Code::kPermissionDenied,
                 "check the access key ID, and that it belongs to this endpoint"},
    KnownS3Error{"SignatureDoesNotMatch", Code::kPermissionDenied,
                 "check the secret access key, and that nothing on the way changes requests"},
    KnownS3Error{"InvalidToken", Code::kPermissionDenied, "check the session token"},
    KnownS3Error{"AuthorizationHeaderMalformed", Code::kPermissionDenied,
                 "check region, endpoint and access key ID of the source"},
    KnownS3Error{"RequestTimeTooSkewed", Code::kPermissionDenied,
                 "this machine's clock and the server's differ by more than 15 minutes"},
    KnownS3Error{"InvalidObjectState", Code::kPermissionDenied,
                 "the object is archived: restore it before it is read"},
    KnownS3Error{"InvalidRequest", Code::kInvalidArgument, kCustomerKeyAdvice},
    KnownS3Error{"InvalidEncryptionParameters", Code::kInvalidArgument, kCustomerKeyAdvice},
    KnownS3Error{kExpiredToken, Code::kPermissionDenied, kExpiredAdvice},
    KnownS3Error{kExpiredTokenException, Code::kPermissionDenied, kExpiredAdvice},
    KnownS3Error{kTokenRefreshRequired, Code::kPermissionDenied, kExpiredAdvice},
    KnownS3Error{"NotImplemented", Code::kInvalidArgument, kNotKnownAdvice},
    KnownS3Error{"SlowDown", Code::kUnavailable, "fewer requests at a time, please"},
    KnownS3Error{"RequestTimeout", Code::kUnavailable, "the request did not arrive in time"},
    KnownS3Error{"RequestLimitExceeded", Code::kUnavailable, "fewer requests at a time, please"},
    KnownS3Error{"TooManyRequests", Code::kUnavailable, "fewer requests at a time, please"},
    KnownS3Error{"InternalError", Code::kUnavailable, "the server cannot answer now"},
    KnownS3Error{"ServiceUnavailable", Code::kUnavailable, "the server cannot answer now"},
    KnownS3Error{"PreconditionFailed", Code::kConflict, kChangedAdvice},
    KnownS3Error{"InvalidRange", Code::kConflict, kChangedAdvice},
};

// What a status means where the body says nothing that is known, after a HEAD for example.
KnownS3Error ByHttpStatus(int http_status) {
  switch (http_status) {
    case 301:
    case 307:
    case 308:
      return {"", Code::kInvalidArgument, "the bucket is elsewhere: check region and endpoint"};
    case 401:
    case 403:
      return {"", Code::kPermissionDenied, "the keys, or requests without keys, may not read it"};
    case 404:
    case 410:
      return {"", Code::kNotFound, "no such object or bucket"};
    case 408:
    case 429:
      return {"", Code::kUnavailable, "the server asks to come back later"};
    case 412:
    case 416:
      return {"", Code::kConflict, kChangedAdvice};
    case 501:
    case 505:
      return {"", Code::kInvalidArgument, kNotKnownAdvice};
    default:
      if (http_status >= 500) return {"", Code::kUnavailable, "the server cannot answer now"};
      // After a HEAD nothing says why.
      return {
          "", Code::kInvalidArgument,
          "is this an S3 server, and its endpoint's address right? Objects encrypted with a key of "
          "yours (SSE-C) need it, and others none: sseCustomerKey"};
  }
}

// One line of readable text.
std::string ReadableLine(std::string_view text, size_t limit) {
  if (!IsUtf8(text)) return {};
  std::string line = CutText(std::string(text), limit);
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  return line;
}

bool NamesAnotherRegion(int http_status, std::string_view code) {
  return http_status == 301 || http_status == 307 || code == "PermanentRedirect" ||
         code == "TemporaryRedirect" || code == "AuthorizationHeaderMalformed" ||
         code == "IllegalLocationConstraintException" || (http_status == 400 && code.empty());
}

}  // namespace

S3Error ParseS3Error(std::string_view body) {
  if (body.empty() || body.size() > kS3ErrorBytesMax) return {};
  pugi::xml_document document;
  if (!document.load_buffer(body.data(), body.size(), pugi::parse_default, pugi::encoding_utf8))
    return {};
  pugi::xml_node error = document.child("Error");
  // As STS has it.
  if (!error) error = document.child("ErrorResponse").child("Error");
  return {.code = ReadableLine(error.child_value("Code"), kWordBytesMax),
          .message = ReadableLine(error.child_value("Message"), kMessageBytesMax),
          .region = ReadableLine(error.child_value("Region"), kWordBytesMax)};
}

bool SaysThatKeysExpired(const S3Error& error) {
  return error.code == kExpiredToken || error.code == kExpiredTokenException ||
         error.code == kTokenRefreshRequired;
}

Status S3Status(const S3Refusal& refusal, std::string_view what) {
  const int http_status = refusal.http_status;
  const S3Error& error = refusal.error;
  std::string said = fmt::format("{}: HTTP {}", what, http_status);
  if (!error.code.empty()) said += ": " + error.code;
  if (!error.message.empty()) said += ": " + error.message;
  // A colon or a full stop follows.
  if (said.ends_with('.')) said.pop_back();
  const std::string_view region = error.region.empty() ? refusal.bucket_region : error.region;
  // Servers tell the region with other troubles, too: then it is the one that was asked for.
  const bool another = !region.empty() && region != refusal.asked_region;
  if (another && NamesAnotherRegion(http_status, error.code)) {
    return {Code::kInvalidArgument,
            fmt::format("{}. The bucket is in region {}: set the source's region to it, as "
                        "region={} in an address",
                        said, region, region)};
  }
  const auto* known = std::ranges::find(kKnownS3Errors, error.code, &KnownS3Error::name);
  const KnownS3Error meant = known != kKnownS3Errors.end() ? *known : ByHttpStatus(http_status);
  said += fmt::format(": {}", meant.advice);
  if (meant.code == Code::kConflict) said += fmt::format(". {}", kIndexAgain);
  return {meant.code, std::move(said)};
}

}  // namespace optcache::storage
