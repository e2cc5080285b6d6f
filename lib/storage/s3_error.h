#pragma once

// What S3 says when it refuses: a status of HTTP and, but for HEAD, a few lines of XML.

#include <string>
#include <string_view>

#include "base/status.h"

namespace optcache::storage {

inline constexpr std::size_t kS3ErrorBytesMax = 64U << 10U;

struct S3Error {
  std::string code;     // "NoSuchKey"; empty: the answer does not say
  std::string message;  // of the server, at most 300 bytes, one line
  std::string region;   // where the bucket is, if the server says so
};

// Of the body of an answer. Whatever else stands there, key ids and signatures among it, is left
// behind. Empty if it is not S3's XML.
S3Error ParseS3Error(std::string_view body);

// True if the time of the keys is over, or of the token for which there are keys: others may do.
bool SaysThatKeysExpired(const S3Error& error);

// An answer by which S3 refuses.
struct S3Refusal {
  int http_status = 0;
  S3Error error{};
  std::string_view bucket_region{};  // the header x-amz-bucket-region; empty: not told
  std::string_view asked_region{};   // for which the request was signed
};

// What the caller does about it, in a sentence that begins with `what`.
//   kNotFound          NoSuchKey, NoSuchBucket
//   kUnavailable       SlowDown and the like, 5xx but 501 and 505, 429: try again
//   kConflict          the object is another one
//   kPermissionDenied  keys, also those that have expired; rights, clock, an archived object
//   kInvalidArgument   another region or endpoint is needed: says which; a request that the server
//                      does not know; anything else
Status S3Status(const S3Refusal& refusal, std::string_view what);

}  // namespace optcache::storage
