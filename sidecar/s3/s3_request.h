#pragma once

// What a client of S3 asks for, read from the head of its request. Pure.

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http.h"

namespace optcache::sidecar {

// S3 has 1,024; a member of an archive has the archive's key before its own path.
inline constexpr std::size_t kKeyBytesMax = 4096;
inline constexpr std::size_t kQueryFieldsMax = 64;
inline constexpr std::size_t kListMax = 1000;  // keys and common prefixes in a page

// What S3 answers when it does not do what it is asked: its own code and status, and a sentence.
struct S3Error {
  int status = 400;
  std::string code;  // "NoSuchKey"
  std::string message;
  friend bool operator==(const S3Error&, const S3Error&) = default;
};

enum class S3Operation {
  kListBuckets,
  kHeadBucket,
  kBucketLocation,
  kBucketVersioning,
  kListObjects,    // the first version, by markers
  kListObjectsV2,  // by tokens
  kHeadObject,
  kGetObject,
};
// For metrics: "get_object". In the order of the enumerators, so that they can be counted.
std::string_view S3OperationName(S3Operation operation);
inline constexpr std::size_t kS3Operations = 8;

// Which part of a listing. Strings are decoded.
struct ListQuery {
  std::string prefix;
  std::string delimiter;
  std::string after;     // only keys above it
  bool goes_on = false;  // `after` is where a page ended, which may be a common prefix
  std::size_t max_keys = kListMax;
  bool encodes_keys = false;  // encoding-type=url
  bool names_owner = false;   // V1, or fetch-owner=true
  std::string token;          // as it came, to be repeated; V2
  std::string start_after;    // the same
};

struct S3Request {
  S3Operation operation = S3Operation::kListBuckets;
  std::string bucket;  // decoded
  std::string key;     // decoded
  ListQuery list;
  bool presigned = false;   // the query has a signature, of any version
  bool first_part = false;  // partNumber=1: all of an object that was not uploaded in parts
  // What response-content-type=... and its like ask for instead of an object's own headers.
  net::HttpHeaders overrides;
};

// `target` is the request's "/bucket/key?query", or "/key?query" if its Host names a bucket. The
// answer to a method that writes says how to save elsewhere. Signatures are not checked.
std::expected<S3Request, S3Error> ParseS3Request(std::string_view method, std::string_view target,
                                                 std::string host_bucket = "");

// The token by which a listing goes on after `key`.
std::string TokenAfter(std::string_view key);

}  // namespace optcache::sidecar
