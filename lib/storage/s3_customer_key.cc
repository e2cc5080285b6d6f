#include "storage/s3_customer_key.h"

#include <fmt/format.h>

#include "base/base64.h"
#include "storage/internal/md5.h"

namespace optcache::storage {
namespace {

constexpr size_t kCustomerKeyBytes = 32;      // AES-256
constexpr size_t kCustomerKeyTextBytes = 44;  // in base64

}  // namespace

Result<S3CustomerKey> ParseS3CustomerKey(std::string_view base64) {
  const Result<std::string> key =
      base64.size() <= kCustomerKeyTextBytes ? DecodeBase64(base64) : std::string();
  if (!key || key->size() != kCustomerKeyBytes) {
    return Error(Code::kInvalidArgument,
                 fmt::format("it is not the base64 of {} bytes: {} characters, of which the last "
                             "is \"=\". `base64 -w0 FILE` makes it of a key's bytes",
                             kCustomerKeyBytes, kCustomerKeyTextBytes));
  }
  return S3CustomerKey{.key = std::string(base64), .key_md5 = EncodeBase64(internal::Md5Of(*key))};
}

std::vector<std::pair<std::string, std::string>> CustomerKeyHeaders(const S3CustomerKey& key) {
  return {{"x-amz-server-side-encryption-customer-algorithm", "AES256"},
          {"x-amz-server-side-encryption-customer-key", key.key},
          {"x-amz-server-side-encryption-customer-key-md5", key.key_md5}};
}

}  // namespace optcache::storage
