#pragma once

// What S3 says of an object's bytes beside its ETag: the headers x-amz-checksum-*.

#include <map>
#include <string>
#include <vector>

#include "storage/whole_sums.h"

namespace optcache::storage {

// The names of all of them, in lower case.
const std::vector<std::string>& S3ChecksumHeaders();

// Those of the headers of an answer with a whole object that are sums of all its bytes. What is
// composite, of an object that was uploaded in parts, is a sum of its parts' sums, and what is no
// sum in base64 says nothing: both are left out.
std::vector<ToldSum> ParseS3Checksums(const std::map<std::string, std::string>& headers);

}  // namespace optcache::storage
