#pragma once

// MD5 (RFC 1321): it protects nothing here. S3 wants it of a customer's key, to see that the key
// came as it was sent; OpenSSL has none where it runs by FIPS 140.

#include <string>
#include <string_view>

namespace optcache::storage::internal {

// 16 bytes.
std::string Md5Of(std::string_view bytes);

}  // namespace optcache::storage::internal
