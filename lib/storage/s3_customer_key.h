#pragma once

// A key of the customer's by which a bucket's objects are encrypted (SSE-C): S3 keeps none of it,
// so each request for an object brings it along.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace optcache::storage {

// Both in base64, as they are sent. A secret: it stands in no message.
struct S3CustomerKey {
  std::string key;
  std::string key_md5;

  friend bool operator==(const S3CustomerKey&, const S3CustomerKey&) = default;
};

// Of the base64 of 32 bytes. kInvalidArgument, without repeating it: it is something else.
Result<S3CustomerKey> ParseS3CustomerKey(std::string_view base64);

// Of a request for an object: names in lower case, and values.
std::vector<std::pair<std::string, std::string>> CustomerKeyHeaders(const S3CustomerKey& key);

}  // namespace optcache::storage
