#pragma once

// AWS Signature Version 4, by which S3 knows whose a request is: pure, tested with the vectors that
// AWS publishes. The rules: docs.aws.amazon.com, "Authenticating Requests: Using the Authorization
// Header"; S3 takes a path as it is sent, encoded once and not normalised.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/percent_encoding.h"

namespace optcache::storage {

struct S3Credentials {
  std::string access_key_id;  // empty: requests go unsigned, as public buckets allow
  std::string secret_access_key;
  std::string session_token;  // empty for keys that last

  bool anonymous() const { return access_key_id.empty(); }
  friend bool operator==(const S3Credentials&, const S3Credentials&) = default;
};

// What is signed of a request: all that is sent of it, but headers that are not named here.
struct SignedRequest {
  std::string_view method;
  std::string_view path;  // percent-encoded, begins with a slash
  QueryFields query;      // not encoded, in any order
  // Names in lower case, in any order, values as they are sent; `host` and `x-amz-date` among them.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string_view payload_hash;  // SHA-256 of the body in hexadecimal, or UNSIGNED-PAYLOAD
};

struct SigningScope {
  std::string_view date_time;  // as in x-amz-date: "20130524T000000Z"
  std::string_view region;
  std::string_view service = "s3";
};

// Of a request without a body.
inline constexpr std::string_view kEmptyPayloadHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// The steps, for tests: what is hashed, and what of it is signed.
std::string CanonicalRequest(const SignedRequest& request);
std::string StringToSign(const SignedRequest& request, const SigningScope& scope);

// The value of the header Authorization.
std::string Authorization(const SignedRequest& request, const SigningScope& scope,
                          const S3Credentials& credentials);

// "20130524T000000Z" of seconds since 1970.
std::string AmazonDateTime(double unix_seconds);

// All headers, "Name: value" each, that a request without a body sends to S3 besides Host: those in
// `headers` (names in lower case), x-amz-date, x-amz-content-sha256, the session token and
// Authorization. Of anonymous credentials: `headers` alone.
struct S3RequestLine {
  std::string_view method;
  std::string_view host;  // as in the header, with the port if it is not the scheme's own
  std::string_view path;  // percent-encoded
  QueryFields query;      // not encoded
};
std::vector<std::string> SignedHeaders(const S3RequestLine& line,
                                       std::vector<std::pair<std::string, std::string>> headers,
                                       std::string_view region, double unix_seconds,
                                       const S3Credentials& credentials);

}  // namespace optcache::storage
