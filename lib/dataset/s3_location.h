#pragma once

// A bucket as resources name it, and the address that stands for it on command lines:
// docs/formats/address.md.

#include <string>

namespace optcache::dataset {

// What is empty is left to the reader of the address.
struct S3Location {
  std::string bucket;
  std::string prefix;
  std::string endpoint;
  std::string region;
  std::string style;  // "path" or "virtual"
  bool requester_pays = false;
  std::string listing;
  std::string role_arn;
  std::string sts_endpoint;
  std::string token_file;

  friend bool operator==(const S3Location&, const S3Location&) = default;
};

// "s3://bucket/prefix?endpoint=…&region=…": the same text for the same location, always.
std::string AddressOf(const S3Location& location);

}  // namespace optcache::dataset
