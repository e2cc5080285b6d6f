#pragma once

// The address of a bucket, as people write it: docs/formats/address.md.

#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/s3_credentials.h"

namespace optcache::storage {

inline constexpr std::string_view kS3Scheme = "s3://";

// What requests are sent to. A value.
struct S3Address {
  enum class Style { kPath, kVirtualHost };  // https://host/bucket/key, https://bucket.host/key

  std::string bucket;
  std::string prefix;  // of all keys; empty, or ends with a slash
  std::string
      endpoint;  // http:// or https://, host and perhaps port and path, without a last slash
  std::string region;
  Style style = Style::kPath;
  bool requester_pays = false;
  std::string listing;  // key of a list of the bucket's keys, see key_list.h; empty: none
  // Of a web identity; without token_file there is none.
  std::string role_arn;
  std::string sts_endpoint;
  std::string token_file;

  bool web_identity() const { return !token_file.empty(); }
  // "s3://bucket/prefix", for messages.
  std::string name() const;
  friend bool operator==(const S3Address&, const S3Address&) = default;
};

// Reads "s3://bucket/prefix?region=eu-west-1&…". What is left out comes from the variables that
// AWS's tools know (AWS_REGION, AWS_ENDPOINT_URL_S3, …), or is what AWS has. kInvalidArgument says
// what is wrong and what there is.
Result<S3Address> ParseS3Address(std::string_view text, const Environment& environment);

// How the requests for a bucket begin.
struct S3Place {
  std::string origin;  // "https://host:port"
  std::string host;    // as in the header Host: with the port if it is not the scheme's own
  std::string path;    // of the bucket, without a last slash, percent-encoded; perhaps empty

  bool encrypted() const { return origin.starts_with("https://"); }
  // Nobody on the way reads what is sent: it is encrypted, or does not leave this machine.
  bool confidential() const;
  // Google Cloud Storage: it unpacks objects that are stored with Content-Encoding: gzip for all
  // who do not say that they take gzip, so that more bytes come than it lists.
  bool unpacks_gzip() const;
};
S3Place PlaceOf(const S3Address& address);

// localhost, "127." and what a dotted address has after it, "[::1]"; without a port.
bool IsLoopbackHost(std::string_view host);

}  // namespace optcache::storage
